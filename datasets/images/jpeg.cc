// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <cstdio>

// Must follow <cstdio>, which it does not include.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "datasets/images/codecs.h"
#include "datasets/images/exif.h"
#include "framework/base/error.h"

namespace phalanx::images {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;

// libjpeg calls leave() when it fails, which jumps back to the decoder.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf out;
};

void leave(j_common_ptr jpeg) { std::longjmp(reinterpret_cast<JpegErrors*>(jpeg->err)->out, 1); }

// libjpeg only warns about damage that would make a part of the image grey.
void leave_if_damaged(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  const int code = jpeg->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE) leave(jpeg);
}

unsigned scale_of(const jpeg_decompress_struct& jpeg, std::int64_t smallest_side) {
  const auto side = static_cast<std::int64_t>(std::min(jpeg.image_width, jpeg.image_height));
  for (const unsigned scale : {8U, 4U, 2U}) {
    if (smallest_side > 0 && side / scale >= smallest_side) return scale;
  }
  return 1;
}

J_COLOR_SPACE color_space_of(const jpeg_decompress_struct& jpeg) {
  switch (jpeg.jpeg_color_space) {
    case JCS_GRAYSCALE:
      return JCS_GRAYSCALE;
    case JCS_CMYK:
    case JCS_YCCK:
      return JCS_CMYK;
    default:
      return JCS_RGB;
  }
}

struct JpegDecoder {
  const std::string& name;
  JpegErrors errors{};
  jpeg_decompress_struct jpeg{};
  Decoded decoded{};

  explicit JpegDecoder(const std::string& its_name) : name(its_name) {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = leave;
    errors.base.emit_message = leave_if_damaged;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Returns false if libjpeg has failed. Has no local objects, because a jump out of libjpeg runs no destructors.
  bool decode(std::string_view bytes, std::int64_t smallest_side, bool with_orientation) {
    if (setjmp(errors.out) != 0) return false;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    if (with_orientation) jpeg_save_markers(&jpeg, kExifMarker, 0xffff);
    jpeg_read_header(&jpeg, TRUE);
    if (with_orientation) read_orientation();
    jpeg.out_color_space = color_space_of(jpeg);
    jpeg.scale_num = 1;
    jpeg.scale_denom = scale_of(jpeg, smallest_side);
    jpeg_calc_output_dimensions(&jpeg);
    check_pixels(jpeg.output_height, jpeg.output_width, name);
    jpeg_start_decompress(&jpeg);
    decoded.pixels = at::empty({jpeg.output_height, jpeg.output_width, jpeg.output_components}, at::kByte);
    while (jpeg.output_scanline < jpeg.output_height) {
      auto* row = decoded.pixels.mutable_data_ptr<std::uint8_t>() +
                  static_cast<std::ptrdiff_t>(jpeg.output_scanline) * jpeg.output_width * jpeg.output_components;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    return true;
  }

  void read_orientation() {
    for (const auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
      constexpr std::string_view kExif("Exif\0\0", 6);
      const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
      if (marker->marker != kExifMarker || !data.starts_with(kExif)) continue;
      decoded.orientation = exif_orientation(data.substr(kExif.size()));
      return;
    }
  }
};

// An inverted value of cyan, magenta, yellow or black is the amount of light that the ink lets through.
at::Tensor color_of_inks(const at::Tensor& inks) {
  at::Tensor color = at::empty({inks.size(0), inks.size(1), 3}, at::kByte);
  const auto* from = inks.const_data_ptr<std::uint8_t>();
  auto* to = color.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < inks.numel(); i += 4, from += 4) {
    const unsigned light = from[3];
    for (int c = 0; c < 3; ++c) *to++ = static_cast<std::uint8_t>(light - over_255((255U - from[c]) * light));
  }
  return color;
}

}  // namespace

Decoded decode_jpeg(std::string_view bytes, std::int64_t smallest_side, bool with_orientation,
                    const std::string& name) {
  JpegDecoder decoder(name);
  if (decoder.decode(bytes, smallest_side, with_orientation)) {
    auto& decoded = decoder.decoded;
    if (decoded.pixels.size(2) == 4) decoded.pixels = color_of_inks(decoded.pixels);
    return decoded;
  }
  std::array<char, JMSG_LENGTH_MAX> message{};
  auto& jpeg = decoder.jpeg;
  jpeg.err->format_message(reinterpret_cast<j_common_ptr>(&jpeg), message.data());
  const auto offset = jpeg.src == nullptr ? 0 : bytes.size() - std::min(bytes.size(), jpeg.src->bytes_in_buffer);
  throw DataError(name + ": byte " + std::to_string(offset) + ": a damaged JPEG: " + message.data());
}

}  // namespace phalanx::images
