// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace phalanx {

/// The keys and values of the tokens that a language model has seen, so that it can go on with the next ones without
/// computing those before them again: of L layers with h heads of w features, 2 L h w numbers for each token of each
/// sequence. Sequences of a batch are equally long.
class KeyValueCache {
 public:
  /// `capacity`: the most tokens of a sequence.
  explicit KeyValueCache(std::int64_t capacity) : capacity_(capacity) {}

  std::int64_t capacity() const { return capacity_; }

  /// Tokens of each sequence that this layer has seen.
  std::int64_t length(std::size_t layer = 0) const { return layer < layers_.size() ? layers_[layer].length : 0; }

  /// Adds those of the next tokens, [n, heads, t, head width], and gives those of all tokens so far. Throws
  /// std::length_error where there are more than the capacity.
  std::pair<at::Tensor, at::Tensor> append(std::size_t layer, const at::Tensor& keys, const at::Tensor& values);

 private:
  struct Layer {
    at::Tensor keys, values;  // [n, heads, capacity, head width]
    std::int64_t length = 0;
  };

  std::int64_t capacity_;
  std::vector<Layer> layers_;
};

}  // namespace phalanx
