// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

#include "framework/comm/communicator.h"
#include "models/key_value_cache.h"

namespace phalanx {

/// Attention of which each position looks at itself and those before it (Vaswani et al. 2017, Attention Is All You
/// Need, arXiv:1706.03762, section 3.2), in the ways that a language model needs: whole sequences, a part of them, and
/// the next tokens alone.
class CausalAttention {
 public:
  /// `fused`: by LibTorch's kernel; otherwise as matrix products with a softmax between. `layer`: its place in caches.
  CausalAttention(bool fused, std::size_t layer) : fused_(fused), layer_(layer) {}

  /// query [n, heads, t, head width]; key and value the same with as many heads or, each for several queries in a row,
  /// fewer (Ainslie et al. 2023, GQA, arXiv:2305.13245). The result is like query.
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

  /// From now on of a part of the positions, with the other ranks of `group` (framework/parallel/ring_attention.h).
  /// Throws ConfigError for attention that is not fused.
  void divide_sequence(const CommunicatorPtr& group);

  /// From now on of the tokens behind those of `cache`; null: of whole sequences.
  void go_on_from(KeyValueCache* cache) { cache_ = cache; }

  /// The place in its sequence of the first position that forward() is of next.
  std::int64_t first_position() const { return cache_ == nullptr ? 0 : cache_->length(layer_); }

 private:
  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

  bool fused_;
  std::size_t layer_;
  CommunicatorPtr context_;         // null: all positions are here
  KeyValueCache* cache_ = nullptr;  // not owned
};

}  // namespace phalanx
