#include "datasets/testing/image_files.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <jpeglib.h>
#include <png.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

namespace phalanx::testing {
namespace {

at::Tensor interleaved(const at::Tensor& image) { return image.permute({1, 2, 0}).contiguous(); }

std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + 511) / 512 * 512, '\0');
  return bytes;
}

std::string tar_header(const std::string& name, std::size_t size, char type) {
  std::string header(512, '\0');
  header.replace(0, std::min<std::size_t>(name.size(), 100), name.substr(0, 100));
  header.replace(100, 7, "0000644");
  std::array<char, 13> digits{};
  std::snprintf(digits.data(), digits.size(), "%011zo", size);
  header.replace(124, 11, digits.data());
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 6, std::string("ustar\0", 6));
  header.replace(263, 2, "00");
  const auto sum = std::accumulate(header.begin(), header.end(), 0U,
                                   [](unsigned total, char byte) { return total + static_cast<unsigned char>(byte); });
  std::snprintf(digits.data(), digits.size(), "%06o", sum);
  header.replace(148, 6, digits.data());
  header[154] = '\0';
  return header;
}

std::string pax_record(const std::string& text) {
  std::size_t length = text.size() + 2;  // a space and a line's end
  while (std::to_string(length).size() + text.size() + 2 != length) ++length;
  return std::to_string(length) + " " + text + "\n";
}

}  // namespace

std::string png_bytes(const at::Tensor& image) {
  constexpr std::array<png_uint_32, 5> kFormats{0, PNG_FORMAT_GRAY, 0, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  const at::Tensor pixels = interleaved(image);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.size(1));
  png.width = static_cast<png_uint_32>(image.size(2));
  png.format = kFormats.at(static_cast<std::size_t>(image.size(0)));
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&png, nullptr, &size, 0, pixels.const_data_ptr(), 0, nullptr);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&png, bytes.data(), &size, 0, pixels.const_data_ptr(), 0, nullptr) == 0) {
    throw std::runtime_error(png.message);
  }
  bytes.resize(size);
  return bytes;
}

std::string jpeg_bytes(const at::Tensor& image, int quality) {
  const at::Tensor pixels = interleaved(image);
  jpeg_error_mgr errors{};
  jpeg_compress_struct jpeg{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_height = static_cast<JDIMENSION>(image.size(1));
  jpeg.image_width = static_cast<JDIMENSION>(image.size(2));
  jpeg.input_components = static_cast<int>(image.size(0));
  jpeg.in_color_space = image.size(0) == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<std::uint8_t*>(pixels.const_data_ptr<std::uint8_t>()) +
                jpeg.next_scanline * static_cast<std::size_t>(image.size(2) * image.size(0));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string bytes(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return bytes;
}

std::string tar_bytes(const std::vector<std::pair<std::string, std::string>>& files, bool pax) {
  std::string archive;
  for (const auto& [name, content] : files) {
    if (name.size() > 100) {
      const auto extended = pax ? pax_record("path=" + name) : name + '\0';
      archive += tar_header("long", extended.size(), pax ? 'x' : 'L') + padded(extended);
    }
    archive += tar_header(name, content.size(), '0') + padded(content);
  }
  return archive + std::string(1024, '\0');
}

at::Tensor smooth_image(std::int64_t channels, std::int64_t height, std::int64_t width, double phase) {
  const at::Tensor rows = at::arange(height, at::kFloat).view({-1, 1}) / static_cast<double>(height),
                   columns = at::arange(width, at::kFloat) / static_cast<double>(width);
  std::vector<at::Tensor> planes;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    const auto turn = phase + static_cast<double>(channel);
    planes.push_back((((rows * 3 + turn).sin() + (columns * 2 + turn).cos()) * 60 + 127).to(at::kByte));
  }
  return at::stack(planes);
}

}  // namespace phalanx::testing
