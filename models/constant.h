// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace phalanx {

/// A tensor that a model computes with but neither learns nor saves, such as a table of positions. It moves to the
/// requested device. Not thread-safe, like models.
class Constant {
 public:
  explicit Constant(at::Tensor value) : value_(std::move(value)) {}

  std::int64_t size(std::int64_t dim) const { return value_.size(dim); }

  const at::Tensor& on(const at::Device& device) {
    if (value_.device() != device) value_ = value_.to(device);
    return value_;
  }

 private:
  at::Tensor value_;
};

}  // namespace phalanx
