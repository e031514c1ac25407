// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/partition/vocabulary_shard.h"

/// Functions of logits whose classes are sharded over ranks. They are collective: all ranks of the group call them in
/// the same order, with the same rows, and get the same result.
namespace phalanx {

/// Returns all scores, [..., classes], by an all-gather. Differentiable if each rank computes the same loss from them.
at::Tensor gather_logits(const at::Tensor& part, const VocabularyShard& parts);

/// Returns the class with the highest score, int64 [...], as argmax(-1) of all scores would. The lowest of equally good
/// classes wins. The cost is an all-gather of 16 bytes per row.
at::Tensor sharded_argmax(const at::Tensor& part, const VocabularyShard& parts);

/// Returns the mean cross entropy of logits [..., classes here] and class numbers int64 [...], except for targets equal
/// to `ignored`. The share `smoothing` of each target is spread over all classes. The value equals
/// at::cross_entropy_loss of all logits up to rounding, and is computed in float32 at least. Once differentiable.
///
/// No rank gets the logits of other ranks (Shoeybi et al. 2019, Megatron-LM, arXiv:1909.08053, section 3). The
/// communication is an all-reduce of each row's largest logit, and one of two numbers per row (the sum of exponentials
/// and the target's logit; three numbers with smoothing). Backward needs no communication.
at::Tensor sharded_cross_entropy(const at::Tensor& part, const VocabularyShard& parts, const at::Tensor& target,
                                 std::int64_t ignored, double smoothing);

}  // namespace phalanx
