// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/kernels/windows.h"

namespace phalanx::vector {

/// Computes the largest element of each window of `planes` images [height, width], one after the other, in vectors of
/// several windows. `y` [planes, out height, out width] gets the elements, and `places`, of the same shape, gets their
/// places in their image: row * width + column. The first of equal elements counts; NaN is larger than every number,
/// and the last NaN counts, as in LibTorch. Padding never counts. height * width must be below 2^31. Thread-safe.
void max_pool_planes(const float* x, float* y, std::int64_t* places, std::int64_t planes, const Windows& windows);

}  // namespace phalanx::vector
