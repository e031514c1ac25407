#pragma once

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

}  // namespace phalanx::vector
