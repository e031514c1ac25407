// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/images/codecs.h"
#include "datasets/images/exif.h"
#include "framework/base/error.h"

namespace phalanx::images {
namespace {

// The maximum expansion of deflate: bytes per compressed byte.
constexpr std::int64_t kMaxDeflated = 1032;

// Returns true if a chunk other than IDAT is longer than the rest of the file. libpng allocates memory for such a
// chunk, up to 2 GB, before it reads it.
bool has_overlong_chunk(std::string_view bytes) {
  constexpr std::size_t kSignature = 8, kAround = 12;  // bytes; a chunk has its length, its type and a checksum
  std::size_t at = kSignature;
  while (at < bytes.size() && bytes.size() - at >= kAround) {
    std::size_t length = 0;
    for (std::size_t i = at; i < at + 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
    const auto type = bytes.substr(at + 4, 4);
    if (type == "IEND") return false;
    if (length > bytes.size() - at - kAround) return type != "IDAT";
    at += kAround + length;
  }
  return false;
}

// libpng calls fail() when it fails, which jumps back to the function that called libpng. The jump runs no destructors,
// so these functions have no local objects.
struct PngDecoder {
  std::string_view left;
  std::jmp_buf out{};
  std::array<char, 256> message{};
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows{};
  Decoded decoded{};

  explicit PngDecoder(std::string_view bytes) : left(bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, [](png_structp, png_const_charp) {});
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) throw std::bad_alloc();
    png_set_read_fn(png, this, read);
  }
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  [[noreturn]] static void fail(png_structp png, png_const_charp why) {
    auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self.message.data(), self.message.size(), "%s", why);
    std::longjmp(self.out, 1);
  }

  static void read(png_structp png, png_bytep to, std::size_t size) {
    auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > self.left.size()) png_error(png, "the file ends early");
    std::memcpy(to, self.left.data(), size);
    self.left.remove_prefix(size);
  }

  // Returns false if libpng has failed, like the functions below.
  bool read_header() {
    if (setjmp(out) != 0) return false;
    png_read_info(png, info);
    png_set_strip_16(png);
    // Expands palettes and samples of fewer than 8 bits, and turns a transparent colour into alpha.
    png_set_expand(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }

  void make_rows() {
    const auto height = png_get_image_height(png, info);
    decoded.pixels = at::empty({height, png_get_image_width(png, info), png_get_channels(png, info)}, at::kByte);
    auto* const first = decoded.pixels.mutable_data_ptr<std::uint8_t>();
    for (std::size_t i = 0; i < height; ++i) rows.push_back(first + i * png_get_rowbytes(png, info));
  }

  bool read_pixels(bool with_orientation) {
    if (setjmp(out) != 0) return false;
    png_read_image(png, rows.data());
    png_read_end(png, info);
    if (with_orientation) read_orientation();
    return true;
  }

  void read_orientation() {
#ifdef PNG_eXIf_SUPPORTED
    png_uint_32 size = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(png, info, &size, &exif) == 0) return;
    decoded.orientation = exif_orientation({reinterpret_cast<const char*>(exif), size});
#endif
  }
};

}  // namespace

Decoded decode_png(std::string_view bytes, bool with_orientation, const std::string& name) {
  if (has_overlong_chunk(bytes)) throw DataError(name + ": a damaged PNG: the file ends early");
  PngDecoder decoder(bytes);
  const auto require = [&](bool succeeded) {
    if (!succeeded) throw DataError(name + ": a damaged PNG: " + decoder.message.data());
  };
  require(decoder.read_header());
  const std::int64_t height = png_get_image_height(decoder.png, decoder.info),
                     width = png_get_image_width(decoder.png, decoder.info);
  check_pixels(height, width, name);
  // A pixel takes at least one bit, and a row one byte in addition.
  if (height * (width / 8 + 1) > kMaxDeflated * std::ssize(bytes)) {
    throw DataError(name + ": a damaged PNG: " + std::to_string(bytes.size()) + " bytes cannot hold " +
                    std::to_string(width) + " x " + std::to_string(height) + " pixels");
  }
  decoder.make_rows();
  require(decoder.read_pixels(with_orientation));
  return decoder.decoded;
}

}  // namespace phalanx::images
