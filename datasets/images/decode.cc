#include "datasets/images/decode.h"

#include <ATen/ops/empty.h>
#include <png.h>

// After <cstdio>, which it does not include.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <memory>

#include "framework/base/error.h"

namespace phalanx {
namespace {

at::Tensor empty_image(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return at::empty({height, width, channels}, at::kByte);
}

void refuse_too_large(std::int64_t height, std::int64_t width, const std::string& name) {
  if (height <= kMostPixels / std::max<std::int64_t>(width, 1)) return;
  throw DataError(name + ": is an image of " + std::to_string(width) + " x " + std::to_string(height) +
                  " pixels, more than the " + std::to_string(kMostPixels) + " that are decoded; scale it down");
}

// libjpeg calls back when it fails, and must not be returned to.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf out;
};

void leave(j_common_ptr jpeg) { std::longjmp(reinterpret_cast<JpegErrors*>(jpeg->err)->out, 1); }

// Of damage, which would leave a part of the image grey, there are only warnings.
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

struct JpegDecoder {
  JpegErrors errors{};
  jpeg_decompress_struct jpeg{};
  at::Tensor image{};

  JpegDecoder() {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = leave;
    errors.base.emit_message = leave_if_damaged;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Both return false where libjpeg has failed. They have no objects of their own, whose destructors a jump would leave
  // out.
  bool read_header(std::string_view bytes) {
    if (setjmp(errors.out) != 0) return false;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
    return true;
  }

  bool decode(const DecodeOptions& options) {
    if (setjmp(errors.out) != 0) return false;
    jpeg.out_color_space = options.color ? JCS_RGB : JCS_GRAYSCALE;
    jpeg.scale_num = 1;
    jpeg.scale_denom = scale_of(jpeg, options.smallest_side);
    jpeg_start_decompress(&jpeg);
    image = empty_image(jpeg.output_height, jpeg.output_width, jpeg.output_components);
    while (jpeg.output_scanline < jpeg.output_height) {
      auto* row = image.mutable_data_ptr<std::uint8_t>() +
                  static_cast<std::ptrdiff_t>(jpeg.output_scanline) * jpeg.output_width * jpeg.output_components;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    return true;
  }
};

at::Tensor decode_jpeg(std::string_view bytes, const DecodeOptions& options, const std::string& name) {
  JpegDecoder decoder;
  if (decoder.read_header(bytes)) {
    refuse_too_large(decoder.jpeg.image_height, decoder.jpeg.image_width, name);
    if (decoder.decode(options)) return decoder.image;
  }
  std::array<char, JMSG_LENGTH_MAX> message{};
  auto& jpeg = decoder.jpeg;
  jpeg.err->format_message(reinterpret_cast<j_common_ptr>(&jpeg), message.data());
  const auto offset = jpeg.src == nullptr ? 0 : bytes.size() - std::min(bytes.size(), jpeg.src->bytes_in_buffer);
  throw DataError(name + ": byte " + std::to_string(offset) + ": a damaged JPEG: " + message.data());
}

at::Tensor decode_png(std::string_view bytes, const DecodeOptions& options, const std::string& name) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> freed(&png, &png_image_free);
  const auto require = [&](int succeeded) {
    if (succeeded == 0) throw DataError(name + ": a damaged PNG: " + png.message);
  };
  require(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()));
  refuse_too_large(png.height, png.width, name);
  // A pixel has at least one bit, and a stream of deflate grows to 1032 times its size at most.
  if (std::uint64_t{png.height} * png.width / 8 / 1032 > bytes.size()) {
    throw DataError(name + ": a damaged PNG: " + std::to_string(bytes.size()) + " bytes cannot hold " +
                    std::to_string(png.width) + " x " + std::to_string(png.height) + " pixels");
  }
  png.format = options.color ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  at::Tensor image = empty_image(png.height, png.width, options.color ? 3 : 1);
  constexpr png_color kBlack{0, 0, 0};
  require(png_image_finish_read(&png, &kBlack, image.mutable_data_ptr<std::uint8_t>(), 0, nullptr));
  return image;
}

}  // namespace

at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options, const std::string& name) {
  constexpr std::string_view kJpeg = "\xff\xd8\xff", kPng = "\x89PNG";
  at::Tensor image;
  if (bytes.starts_with(kJpeg)) {
    image = decode_jpeg(bytes, options, name);
  } else if (bytes.starts_with(kPng)) {
    image = decode_png(bytes, options, name);
  } else {
    throw DataError(name + ": byte 0: neither a JPEG nor a PNG");
  }
  return image.permute({2, 0, 1});
}

}  // namespace phalanx
