// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

#include "framework/comm/communicator.h"
#include "models/key_value_cache.h"

namespace phalanx {

/// Causal attention, in which each position attends to itself and to earlier positions (Vaswani et al. 2017, Attention
/// Is All You Need, arXiv:1706.03762, section 3.2). It supports the modes of a language model: whole sequences, a part
/// of them, and only the next tokens.
class CausalAttention {
 public:
  /// If `fused`, uses LibTorch's fused kernels, otherwise matrix products and a softmax. `layer` is the index of the
  /// layer in caches. Among LibTorch's kernels for GPUs, flash attention and cuDNN's read heads that several queries
  /// share in place. All others get a copy of keys and values for each query head.
  CausalAttention(bool fused, std::size_t layer) : fused_(fused), layer_(layer) {}

  /// Takes query [n, heads, t, head width], and key and value of the same shape with as many heads, or with fewer
  /// heads, each shared by several consecutive query heads (Ainslie et al. 2023, GQA, arXiv:2305.13245). The result has
  /// the shape of query.
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

  /// From now on, inputs have a part of the positions, and the ranks of `group` have the others
  /// (framework/parallel/ring_attention.h). Throws ConfigError for attention that is not fused.
  void enable_context_parallel(const CommunicatorPtr& group);

  /// From now on, inputs are the tokens that follow the tokens in `cache`; null: whole sequences.
  void use_kv_cache(KeyValueCache* cache) { cache_ = cache; }

  /// Returns the position in its sequence of the first token of the next forward().
  std::int64_t first_position() const { return cache_ == nullptr ? 0 : cache_->length(layer_); }

 private:
  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

  bool fused_;
  std::size_t layer_;
  CommunicatorPtr context_;         // null: this rank has all positions
  KeyValueCache* cache_ = nullptr;  // not owned
};

}  // namespace phalanx
