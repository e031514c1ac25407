// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/windows.h"

namespace phalanx::vector {

/// An average pooling. The sum of a window is divided by `divisor`, or by the number of the window's elements if that
/// is 0.
struct AveragePool {
  Windows windows;  // with dilation 1
  bool counts_padding = true;
  std::int64_t divisor = 0;

  /// Returns the number of rows, or of columns, that count in a window.
  std::int64_t count(const Windows::Axis& axis, std::int64_t window) const {
    const auto [begin, end] = inside(axis, window);
    if (!counts_padding) return end - begin;
    return std::min(axis.kernel, axis.input + 2 * axis.padding - window * axis.stride);
  }
};

/// Computes the averages `y` [planes, out height, out width] of `planes` images `x` [planes, height, width]. The
/// columns of a window are summed first, in vectors of several windows. Thread-safe.
void average_pool_planes(const float* x, float* y, std::int64_t planes, const AveragePool& pool);

/// Computes the gradient `of_x` [planes, height, width] from `of_y` [planes, out height, out width]. Thread-safe.
void average_pool_gradient_planes(const float* of_y, float* of_x, std::int64_t planes, const AveragePool& pool);

}  // namespace phalanx::vector
