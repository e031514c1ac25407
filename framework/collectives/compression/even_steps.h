// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

namespace phalanx {

/// Returns the largest |x|; inf or NaN if any value is not finite. Magnitudes compare as integers in the same order as
/// they do as floats, and numbers that are not finite compare above all others. So one loop, which compilers vectorize,
/// finds both.
inline float largest_magnitude(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float value : values) largest = std::max(largest, std::bit_cast<std::int32_t>(value) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}

/// A quantizer that represents numbers by integers from -n to n times a float32 scale s = max |x| / n. The error is at
/// most s / 2.
struct EvenSteps {
  float scale, inverse;

  /// Returns the nearest integer, as a float, and leaves the quantization error in `value`.
  float take(float& value) const {
    constexpr float kRounder = 0x1.8p23F;  // floats of this size are 1 apart: adding it rounds to the nearest integer
    const float rounded = value * inverse + kRounder - kRounder;
    value -= rounded * scale;
    return rounded;
  }
};

/// Writes the scale of a block to the beginning of its code. If all values are 0 or too small for a scale, they are
/// left in `values` as the error. If a value is not finite, the scale is NaN and all values are set to 0.
inline EvenSteps write_scale(std::span<float> values, float n, std::uint8_t* code) {
  const float largest = largest_magnitude(values);
  const bool finite = std::isfinite(largest);
  const float scale = finite ? largest / n : std::numeric_limits<float>::quiet_NaN();
  std::memcpy(code, &scale, sizeof scale);
  if (!finite) std::ranges::fill(values, 0.0F);
  const float inverse = n / largest;
  return {finite ? scale : 0, std::isfinite(inverse) ? inverse : 0};
}

inline float read_scale(const std::uint8_t* code) {
  float scale = 0;
  std::memcpy(&scale, code, sizeof scale);
  return scale;
}

}  // namespace phalanx
