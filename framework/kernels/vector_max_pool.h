#pragma once

#include <cstdint>

namespace phalanx::vector {

/// The windows of a two-dimensional pooling over images of height x width pixels.
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

/// Computes the largest element of each window of `planes` images [height, width], one after the other, in vectors of
/// several windows. `y` [planes, out height, out width] gets the elements, `places` of the same shape where they are
/// in their image: row * width + column. Of equal elements the first counts; NaN is larger than every number, and the
/// last NaN counts, as in LibTorch. Padding never counts. height * width must be below 2^31. Thread-safe.
void max_pool_planes(const float* x, float* y, std::int64_t* places, std::int64_t planes, const Windows& windows);

}  // namespace phalanx::vector
