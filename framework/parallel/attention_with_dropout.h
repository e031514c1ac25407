// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/parallel/attention_pattern.h"
#include "framework/parallel/random_rows.h"

namespace phalanx {

/// Computes scaled dot-product attention with dropout of its weights: softmax(query key^T / sqrt(width)), times the
/// factors that dropout_factors() returns for the weights [n, heads, t, s] of the whole layer, times value. query is
/// [n, heads, t, width], key and value are [n, heads, s, width], and the result has the shape of query. The heads are
/// those of the whole layer from `dropout.first_group` on. Dtypes: float32, float64, bfloat16 or float16; inside an
/// Autocast, products are computed in its dtype. Throws std::invalid_argument for shapes that do not fit.
///
/// Calls attention_at_once() if all weights together have less than kAttentionAtOnceBytes, and else
/// attention_in_blocks(), which takes less memory. Both drop the same weights.
at::Tensor attention_with_dropout(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  const AttentionPattern& pattern, const DropoutNumbers& dropout);

/// Below this size, computing the weights again in backward takes 1.2 to 1.6 times as long as keeping them.
inline constexpr std::int64_t kAttentionAtOnceBytes = std::int64_t{8} << 20;

/// Computes all weights at once. Autograd keeps several tensors of their size for backward.
at::Tensor attention_at_once(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const AttentionPattern& pattern, const DropoutNumbers& dropout);

/// The bytes of attention weights that attention_in_blocks() computes at a time.
inline constexpr std::int64_t kAttentionBlockBytes = std::int64_t{16} << 20;

/// Computes a block of the weights at a time (Rabe and Staats 2021, Self-attention Does Not Need O(n^2) Memory,
/// arXiv:2112.05682): those of whole samples, or of some queries of one sample. Backward computes them and their
/// factors again from query, key and value, as in FlashAttention-2 (Dao 2023, arXiv:2307.08691). A block has all keys
/// of its queries, so its softmax is computed at once, and the sums of exponentials need not be kept. Softmax, dropout
/// and sums over blocks are float32 at least.
///
/// Memory: autograd keeps query, key and value. Forward and backward have about five temporaries of `block_bytes`
/// (about ten on devices, which draw the factors with integers of 64 bits), or of one query of a sample if that is
/// more. Backward also has gradients of the size of query, key and value. No operator waits for a device.
///
/// Once differentiable: throws c10::Error if the gradients shall have gradients.
at::Tensor attention_in_blocks(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const AttentionPattern& pattern, const DropoutNumbers& dropout,
                               std::int64_t block_bytes = kAttentionBlockBytes);

}  // namespace phalanx
