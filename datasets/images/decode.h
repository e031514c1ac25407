// SPDX-License-Identifier: Apache-2.0
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

  /// The colour behind transparent pixels: red, green and blue, 0 to 255. Empty: alpha is dropped.
  std::vector<std::int64_t> background{};
};

/// Decodes a JPEG, PNG or WebP, which the first bytes tell apart. Returns uint8 [channels, height, width], whose
/// channels are the fastest axis in memory. Throws DataError for another format, for damage and for a file that ends
/// early; the message begins with `name` and, if the library knows it, has the offset in the file. Thread-safe.
at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options, const std::string& name);

/// Returns true if this suffix, in letters of any case, is one of the formats that are decoded: ".jpg", ".jpeg", ".png"
/// or ".webp".
bool is_decoded(std::string_view suffix);

/// Returns true if this is the suffix of an image of another format, such as ".gif".
bool is_other_image(std::string_view suffix);

}  // namespace phalanx
