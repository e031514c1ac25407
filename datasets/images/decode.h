// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

struct DecodeOptions {
  /// true: [3, height, width] of red, green and blue. false: [1, height, width] of the luminance of the decoded values,
  /// (19595 R + 38470 G + 7471 B) / 65536, rounded (ITU-R BT.601, as Pillow computes it), for every format.
  bool color = true;

  /// A JPEG is decoded at 1/2, 1/4 or 1/8 of its size (libjpeg's scaled DCT) if no side becomes smaller than this,
  /// which takes a fraction of the time. 0 means full size.
  std::int64_t smallest_side = 0;

  /// true: images are rotated and mirrored according to their Exif data.
  bool turn_upright = false;

  /// The colour behind transparent pixels: red, green and blue, 0 to 255. If empty, alpha is dropped.
  std::vector<std::int64_t> background{};
};

/// Decodes a JPEG, PNG or WebP, which is recognized by its first bytes. Returns uint8 [channels, height, width], with
/// the channels as the fastest axis in memory. Throws DataError for other formats, damaged files and files that end
/// early. The message begins with `name` and has the offset in the file if the library knows it. Thread-safe.
at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options, const std::string& name);

/// Returns true for the suffixes of formats that can be decoded: ".jpg", ".jpeg", ".png" and ".webp", in upper or lower
/// case.
bool is_decoded(std::string_view suffix);

/// Returns true for the suffix of another image format, such as ".gif".
bool is_other_image(std::string_view suffix);

}  // namespace phalanx
