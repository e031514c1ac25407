// SPDX-License-Identifier: Apache-2.0
#include "models/key_value_cache.h"

#include <ATen/ops/empty.h>

#include <stdexcept>
#include <string>

namespace phalanx {

std::pair<at::Tensor, at::Tensor> KeyValueCache::append(std::size_t layer, const at::Tensor& keys,
                                                        const at::Tensor& values) {
  if (layer >= layers_.size()) layers_.resize(layer + 1);
  auto& [all_keys, all_values, length] = layers_[layer];
  const auto added = keys.size(2), after = length + added;
  if (after > capacity_) {
    throw std::length_error("a cache for " + std::to_string(capacity_) + " tokens cannot hold " +
                            std::to_string(after));
  }
  if (length == 0) {
    const auto room = [this](const at::Tensor& like) {
      return at::empty({like.size(0), like.size(1), capacity_, like.size(3)}, like.options());
    };
    all_keys = room(keys);
    all_values = room(values);
  }
  all_keys.narrow(2, length, added).copy_(keys);
  all_values.narrow(2, length, added).copy_(values);
  length = after;
  return {all_keys.narrow(2, 0, after), all_values.narrow(2, 0, after)};
}

}  // namespace phalanx
