#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx {

/// Pixels of the largest image that is decoded, 11,585 x 11,585: a small file can claim any size.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;

struct DecodeOptions {
  bool color = true;  // [3, height, width] of red, green and blue; false: [1, height, width] of their luminance

  /// A JPEG is decoded at a half, a quarter or an eighth of its size where that leaves no side smaller than this
  /// (libjpeg's scaled DCT), which takes a fraction of the time. 0: at its size.
  std::int64_t smallest_side = 0;
};

/// Decodes a JPEG (libjpeg-turbo) or PNG (libpng; what is transparent lies on black): uint8, laid out as
/// [height, width, channels] in memory. Which one it is, its first bytes tell. `name` is what errors begin with. Throws
/// DataError with the offset in the file, where the library tells it, for what is neither, is damaged or ends early, and
/// for images of more than kMostPixels pixels, before it allocates memory for them.
at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options, const std::string& name);

}  // namespace phalanx
