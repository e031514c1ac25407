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
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "datasets/images/most_pixels.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// Deflate compresses at most so many bytes into one.
constexpr std::int64_t kMostDeflated = 1032;

void check_pixels(std::int64_t height, std::int64_t width, const std::string& name) {
  if (height <= images::kMostPixels / width) return;
  throw DataError(name + ": an image of " + std::to_string(width) + " x " + std::to_string(height) +
                  " pixels; at most " + std::to_string(images::kMostPixels) + " are read");
}

at::Tensor empty_image(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return at::empty({height, width, channels}, at::kByte);
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
  const std::string& name;
  JpegErrors errors{};
  jpeg_decompress_struct jpeg{};
  at::Tensor image{};

  explicit JpegDecoder(const std::string& its_name) : name(its_name) {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = leave;
    errors.base.emit_message = leave_if_damaged;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // False: libjpeg has failed. It has no objects of its own, whose destructors a jump would leave out.
  bool decode(std::string_view bytes, const DecodeOptions& options) {
    if (setjmp(errors.out) != 0) return false;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = options.color ? JCS_RGB : JCS_GRAYSCALE;
    jpeg.scale_num = 1;
    jpeg.scale_denom = scale_of(jpeg, options.smallest_side);
    jpeg_calc_output_dimensions(&jpeg);
    check_pixels(jpeg.output_height, jpeg.output_width, name);
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
  JpegDecoder decoder(name);
  if (decoder.decode(bytes, options)) return decoder.image;
  std::array<char, JMSG_LENGTH_MAX> message{};
  auto& jpeg = decoder.jpeg;
  jpeg.err->format_message(reinterpret_cast<j_common_ptr>(&jpeg), message.data());
  const auto offset = jpeg.src == nullptr ? 0 : bytes.size() - std::min(bytes.size(), jpeg.src->bytes_in_buffer);
  throw DataError(name + ": byte " + std::to_string(offset) + ": a damaged JPEG: " + message.data());
}

at::Tensor decode_png(std::string_view bytes, const DecodeOptions& options, const std::string& name) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const auto free = [](png_image* image) { png_image_free(image); };
  const std::unique_ptr<png_image, decltype(free)> freed(&png, free);
  const auto require = [&](int succeeded) {
    if (succeeded == 0) throw DataError(name + ": a damaged PNG: " + png.message);
  };
  require(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()));
  check_pixels(png.height, png.width, name);
  // A pixel takes at least a bit, and a row a byte more.
  if (std::int64_t{png.height} * (png.width / 8 + 1) > kMostDeflated * static_cast<std::int64_t>(bytes.size())) {
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
