// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace phalanx {

/// The largest |x|; inf or NaN where any of them is not finite. As integers, magnitudes are ordered as they are as
/// floats, and what is not finite is above all: one loop, which compilers vectorise, finds both.
inline float largest_magnitude(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float value : values) largest = std::max(largest, std::bit_cast<std::int32_t>(value) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}

}  // namespace phalanx
