#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

struct DecodeOptions {
  /// true: [3, height, width] of red, green and blue. false: [1, height, width] of their luminance, (19595 R + 38470 G
  /// + 7471 B) / 65536, rounded (ITU-R BT.601, as Pillow computes it), of the decoded values whatever the format.
  bool color = true;

  /// A JPEG is decoded at a half, a quarter or an eighth of its size where that leaves no side smaller than this
  /// (libjpeg's scaled DCT), which takes a fraction of the time. 0: at its size.
  std::int64_t smallest_side = 0;

  /// true: an image is turned as its Exif data state.
  bool turn_upright = false;

  /// Red, green and blue of what lies behind pixels that are not opaque. Empty: their alpha is left out.
  std::vector<std::int64_t> background{};
};

/// Decodes a JPEG, PNG or WebP: uint8, laid out as [height, width, channels] in memory unless it was turned. The first
/// bytes tell which one it is. `name` is what errors begin with. Throws DataError, with the offset in the file if the
/// library tells it, for what is none of these, is damaged or ends early. Thread-safe.
at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options, const std::string& name);

/// Returns true if this suffix, in letters of any case, is one of the formats that are decoded: ".jpg", ".jpeg", ".png"
/// or ".webp".
bool is_decoded(std::string_view suffix);

/// Returns true if this is the suffix of an image of another format, such as ".gif".
bool is_other_image(std::string_view suffix);

}  // namespace phalanx
