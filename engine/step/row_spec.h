// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx {

/// The shape and dtype of a layer's output for one row of a batch.
struct RowSpec {
  std::vector<std::int64_t> shape{};  // without the batch dimension
  c10::ScalarType dtype = c10::ScalarType::Float;

  /// Returns the sizes for this number of rows.
  std::vector<std::int64_t> sizes(std::int64_t rows) const {
    std::vector<std::int64_t> sizes{rows};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return sizes;
  }
};

}  // namespace phalanx
