// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"
#include "models/dropout.h"
#include "models/tensor_parallel.h"

namespace phalanx {

/// Which keys each query looks at.
struct AttentionPattern {
  at::Tensor keys{};    // bool [n, s]: of each sample, these alone, at least one; undefined: all
  bool causal = false;  // query i: keys 0 ... i alone
};

/// Scaled dot-product attention (Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762, section 3.2) of
/// whole sequences, whose features are those of one head after the other: query [n, t, heads x head width], key and
/// value [n, s, heads x head width] -> the shape of query.
///
/// By LibTorch's fused kernel, unless `dropout` is given and in training: it leaves out some of the weights
/// [n, heads, t, s], which are then computed as such.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, std::int64_t head_width,
                  const AttentionPattern& pattern, const DropoutImpl* dropout);

/// For a layer of attention that `style` divides by heads: its dropout of weights leaves out what it would of the
/// whole. Throws ConfigError for styles other than column.
void divide_by_heads(TensorStyle style, const CommunicatorPtr& group, DropoutImpl& dropout);

}  // namespace phalanx
