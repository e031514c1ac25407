// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/decode.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>

#include "datasets/images/codecs.h"
#include "datasets/images/exif.h"
#include "datasets/transforms/max_pixels.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using images::Decoded;

Decoded decode(std::string_view bytes, const DecodeOptions& options, const std::string& name) {
  if (bytes.starts_with("\xff\xd8\xff")) {
    return images::decode_jpeg(bytes, options.smallest_side, options.turn_upright, name);
  }
  if (bytes.starts_with("\x89PNG")) return images::decode_png(bytes, options.turn_upright, name);
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return images::decode_webp(bytes, name);
  throw DataError(name + ": byte 0: not a JPEG, PNG or WebP");
}

std::uint8_t blend(unsigned front, unsigned back, unsigned alpha) {
  return images::over_255(front * alpha + back * (255 - alpha));
}

std::uint8_t luminance(unsigned red, unsigned green, unsigned blue) {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16);
}

// Returns the pixels with one or three channels, without alpha.
at::Tensor convert(const at::Tensor& pixels, const DecodeOptions& options) {
  const auto channels = pixels.size(2), wanted = std::int64_t{options.color ? 3 : 1};
  if (channels == wanted) return pixels;
  const bool is_colored = channels > 2, has_alpha = channels % 2 == 0;
  const bool blends = has_alpha && !options.background.empty();
  at::Tensor converted = at::empty({pixels.size(0), pixels.size(1), wanted}, at::kByte);
  const auto* from = pixels.const_data_ptr<std::uint8_t>();
  auto* to = converted.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < pixels.numel(); i += channels, from += channels) {
    std::array<std::uint8_t, 3> color{from[0], from[is_colored ? 1 : 0], from[is_colored ? 2 : 0]};
    if (blends) {
      for (std::size_t c = 0; c < 3; ++c) {
        color[c] = blend(color[c], static_cast<unsigned>(options.background[c]), from[channels - 1]);
      }
    }
    if (options.color) {
      to = std::ranges::copy(color, to).out;
    } else {
      *to++ = luminance(color[0], color[1], color[2]);
    }
  }
  return converted;
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return lower;
}

}  // namespace

void images::check_pixels(std::int64_t height, std::int64_t width, const std::string& name) {
  if (height <= kMaxPixels / width) return;
  throw DataError(name + ": an image of " + std::to_string(width) + " x " + std::to_string(height) +
                  " pixels; at most " + std::to_string(kMaxPixels) + " are read");
}

at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options, const std::string& name) {
  const Decoded decoded = decode(bytes, options, name);
  return images::upright(convert(decoded.pixels, options), decoded.orientation).permute({2, 0, 1});
}

bool is_decoded(std::string_view suffix) {
  const auto lower = in_lower_case(suffix);
  return lower == ".jpg" || lower == ".jpeg" || lower == ".png" || lower == ".webp";
}

bool is_other_image(std::string_view suffix) {
  constexpr std::array<std::string_view, 10> kOthers{".gif",  ".bmp",  ".tif", ".tiff", ".avif",
                                                     ".heic", ".heif", ".jp2", ".jxl",  ".ppm"};
  return std::ranges::find(kOthers, in_lower_case(suffix)) != kOthers.end();
}

}  // namespace phalanx
