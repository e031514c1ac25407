#pragma once

#include <ATen/core/Tensor.h>

#include "models/dropout.h"

namespace phalanx {

/// Which keys each query looks at.
struct AttentionPattern {
  at::Tensor keys{};    // bool [n, s]: of each sample, these alone, at least one; undefined: all
  bool causal = false;  // query i: keys 0 ... i alone
};

/// Scaled dot-product attention (Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762, section 3.2.1) of
/// whole sequences: query [n, heads, t, head width], key and value [n, heads, s, head width] -> the shape of query.
///
/// By LibTorch's fused kernel, unless `dropout` is given and in training: it leaves out some of the weights
/// [n, heads, t, s], which are then computed as such.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const AttentionPattern& pattern = {}, const DropoutImpl* dropout = nullptr);

}  // namespace phalanx
