// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx::images {

/// An image as its file has it.
struct Decoded {
  at::Tensor pixels;    // uint8 [height, width, channels]: luminance, or red, green and blue, and alpha behind either
  int orientation = 1;  // as Exif numbers them (exif.h)
};

/// Returns value / 255, rounded, for a value up to 255 * 255.
constexpr std::uint8_t over_255(unsigned value) {
  return static_cast<std::uint8_t>((((value + 128) >> 8) + value + 128) >> 8);
}

/// Throws DataError, which begins with `name`, for more pixels than kMostPixels.
void check_pixels(std::int64_t height, std::int64_t width, const std::string& name);

/// Decodes a JPEG with libjpeg-turbo. CMYK and YCCK, which are taken for inverted as Adobe's programs write them,
/// become red, green and blue by products with the complement of black. An image is decoded at a half, a quarter or an
/// eighth of its size where that leaves no side smaller than `smallest_side`; 0: at its size. The orientation is read
/// if `with_orientation`. Throws DataError, which begins with `name`, with the offset of the damage.
Decoded decode_jpeg(std::string_view bytes, std::int64_t smallest_side, bool with_orientation, const std::string& name);

/// Decodes a PNG with libpng: 16 bits become their upper byte, and chunks that describe colours (gAMA, iCCP, sRGB,
/// bKGD) are ignored. Throws DataError, which begins with `name`.
Decoded decode_png(std::string_view bytes, bool with_orientation, const std::string& name);

/// Decodes a WebP of one picture with libwebp. Throws DataError, which begins with `name`.
Decoded decode_webp(std::string_view bytes, const std::string& name);

}  // namespace phalanx::images
