// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

namespace phalanx {

/// Attention of queries to a block of keys, from which the attention to several blocks can be computed.
struct BlockAttention {
  at::Tensor output;   // [n, heads, queries, head width], in the dtype of the queries
  at::Tensor log_sum;  // [n, heads, queries]: logarithm of the sum of exponentials of scores, float32 or float64
  std::array<at::Tensor, 2> random_state;  // what the kernel's backward expects; undefined if it expects nothing
};

/// query: [n, heads, queries, head width]; key, value: [n, heads, keys, head width], or with fewer heads, each shared
/// by several consecutive query heads. Scores are scaled by 1 / sqrt(head width). `causal` requires as many keys as
/// queries. Each device and dtype has a kernel of LibTorch. Only flash attention of devices reads shared heads in
/// place: the other kernels get a copy for each query head, which is freed afterwards.
///
/// | device | dtype | |
/// |---|---|---|
/// | CPU | all | flash attention for the CPU |
/// | other | bfloat16, head width a multiple of 8 up to 256 | flash attention |
/// | other | float32, float16, other bfloat16 | memory-efficient attention, which older GPUs have too |
/// | other | float64 | products of matrices: keeps the scores, [n, heads, queries, keys] |
BlockAttention attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool causal);

/// The arguments of attend(), and the gradient of its output. `attention` may be the attention to more blocks than this
/// one: the result is then this block's part of the gradients.
struct BlockAttentionGradient {
  at::Tensor query, key, value;
  BlockAttention attention;
  at::Tensor of_output;
  bool causal = false;
};

/// Returns the gradients of query, key and value, in their dtype and shape.
std::array<at::Tensor, 3> attend_backward(const BlockAttentionGradient& arguments);

}  // namespace phalanx
