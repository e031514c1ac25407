// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// How the ranks of a group divide scores of classes, [..., classes]: rank r has those of the `sizes[r]` classes that
/// follow the ones of the ranks before it. Logits of a language model over its vocabulary, for instance, which all
/// ranks together have once.
struct ClassParts {
  CommunicatorPtr group;
  std::vector<std::int64_t> sizes;

  std::int64_t begin() const;  // the first class of this rank
  std::int64_t classes() const;
};
using ClassPartsPtr = std::shared_ptr<const ClassParts>;

/// What follows is collective: all ranks of the group call it in the same order, with the same rows, and get the same.

/// All scores, [..., classes]; differentiable where each rank computes the same loss of them. An all-gather of them.
at::Tensor gather_scores(const at::Tensor& part, const ClassParts& parts);

/// The class with the highest score, int64 [...], as argmax(-1) of all scores: of equal ones the lowest class. An
/// all-gather of 16 bytes per row.
at::Tensor best_class(const at::Tensor& part, const ClassParts& parts);

/// The mean cross entropy of logits [..., classes here] and class numbers int64 [...] but those that are `ignored`; of
/// each target, `smoothing` is spread over all classes. The value of at::cross_entropy_loss of all logits, up to
/// rounding, in float32 at least; once differentiable.
///
/// No rank gets the logits of others (Shoeybi et al. 2019, Megatron-LM, arXiv:1909.08053, section 3): on the wire are
/// an all-reduce of each row's largest logit, and one of two numbers per row (the sum of exponentials and the target's
/// logit; with smoothing three). Backward needs no communication.
at::Tensor cross_entropy_of_parts(const at::Tensor& part, const ClassParts& parts, const at::Tensor& target,
                                  std::int64_t ignored, double smoothing);

}  // namespace phalanx
