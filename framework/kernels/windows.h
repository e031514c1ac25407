// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace phalanx::vector {

/// The windows of a two-dimensional pooling or convolution over images of height x width pixels.
struct Windows {
  struct Axis {
    std::int64_t input = 0;   // pixels
    std::int64_t output = 0;  // windows
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t padding = 0;  // on each side
    std::int64_t dilation = 1;
  };
  Axis height;
  Axis width;
};

/// The range [begin, end) of elements of a window.
struct WindowRange {
  std::int64_t begin;
  std::int64_t end;
};

/// Returns the elements of window number `window` that are pixels of the image rather than padding.
inline WindowRange inside(const Windows::Axis& axis, std::int64_t window) {
  const std::int64_t first = window * axis.stride - axis.padding;
  const std::int64_t skipped = first < 0 ? (-first + axis.dilation - 1) / axis.dilation : 0;
  const std::int64_t left = axis.input - first;  // pixels from the first element to the end of the image
  const std::int64_t fitting = left <= 0 ? 0 : (left + axis.dilation - 1) / axis.dilation;
  return {skipped, std::max(skipped, std::min(axis.kernel, fitting))};
}

}  // namespace phalanx::vector
