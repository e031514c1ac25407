// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace phalanx {

/// The keys and values of the tokens that a language model has processed, so that it can continue with the next tokens
/// without processing earlier ones again. For L layers with h heads of w features, it stores 2 L h w numbers per token
/// and sequence. All sequences of a batch have the same length.
class KeyValueCache {
 public:
  /// `capacity` is the maximum number of tokens of a sequence.
  explicit KeyValueCache(std::int64_t capacity) : capacity_(capacity) {}

  std::int64_t capacity() const { return capacity_; }

  /// Returns the number of tokens of each sequence that this layer has processed.
  std::int64_t length(std::size_t layer = 0) const { return layer < layers_.size() ? layers_[layer].length : 0; }

  /// Appends the keys and values of the next tokens, [n, heads, t, head width], and returns the keys and values of all
  /// tokens so far. Throws std::length_error if there are more tokens than `capacity`.
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
