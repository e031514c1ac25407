// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx::images {

/// An image as it is stored in its file.
struct Decoded {
  at::Tensor pixels;    // uint8 [height, width, channels]: luminance, or red, green and blue, then alpha if any
  int orientation = 1;  // Exif orientation (exif.h)
};

/// Returns value / 255, rounded, for a value up to 255 * 255.
constexpr std::uint8_t over_255(unsigned value) {
  return static_cast<std::uint8_t>((((value + 128) >> 8) + value + 128) >> 8);
}

/// Throws DataError, which begins with `name`, for more pixels than kMaxPixels.
void check_pixels(std::int64_t height, std::int64_t width, const std::string& name);

/// Decodes a JPEG with libjpeg-turbo. CMYK and YCCK images are assumed to be inverted, as Adobe's programs write them;
/// each ink is multiplied by the complement of black to get red, green and blue. The image is decoded at 1/2, 1/4 or
/// 1/8 of its size if no side becomes smaller than `smallest_side`; 0 means full size. The orientation is read if
/// `with_orientation`. Throws DataError, which begins with `name` and has the offset of the damage.
Decoded decode_jpeg(std::string_view bytes, std::int64_t smallest_side, bool with_orientation, const std::string& name);

/// Decodes a PNG with libpng. 16-bit values are reduced to their upper byte, and chunks that describe colours (gAMA,
/// iCCP, sRGB, bKGD) are ignored. Throws DataError, which begins with `name`.
Decoded decode_png(std::string_view bytes, bool with_orientation, const std::string& name);

/// Decodes a WebP image with libwebp. Throws DataError, which begins with `name`, also for animations.
Decoded decode_webp(std::string_view bytes, const std::string& name);

}  // namespace phalanx::images
