// SPDX-License-Identifier: Apache-2.0
#include "datasets/testing/image_files.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>
#include <jpeglib.h>
#include <png.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "datasets/images/tar_entry.h"

namespace phalanx::testing {
namespace {

at::Tensor interleaved(const at::Tensor& image) { return image.permute({1, 2, 0}).contiguous(); }

std::string pax_record(const std::string& text) {
  std::size_t length = text.size() + 2;  // a space and a line feed
  while (std::to_string(length).size() + text.size() + 2 != length) ++length;
  return std::to_string(length) + " " + text + "\n";
}

std::string compress(const at::Tensor& image, J_COLOR_SPACE in, J_COLOR_SPACE stored, int quality) {
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
  jpeg.in_color_space = in;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, stored);
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

}  // namespace

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string jpeg_bytes(const at::Tensor& image, int quality) {
  const bool color = image.size(0) == 3;
  return compress(image, color ? JCS_RGB : JCS_GRAYSCALE, color ? JCS_YCbCr : JCS_GRAYSCALE, quality);
}

std::string jpeg_of_inks(const at::Tensor& inks, bool ycck) {
  return compress(inks, JCS_CMYK, ycck ? JCS_YCCK : JCS_CMYK, 100);
}

std::string with_orientation(const std::string& jpeg, int orientation) {
  const std::string value{'\0', static_cast<char>(orientation), '\0', '\0'};
  const std::string tiff = from_hex(
                               "4d4d002a00000008"
                               "0001"
                               "0112000300000001") +
                           value + from_hex("00000000");
  const std::string content = from_hex("457869660000") + tiff;
  const std::string marker{'\xff', '\xe1', '\0', static_cast<char>(content.size() + 2)};
  return jpeg.substr(0, 2) + marker + content + jpeg.substr(2);
}

std::string png_of_16_bits(const std::vector<std::uint16_t>& pixel) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = png.height = 1;
  png.format = pixel.size() == 3 ? PNG_FORMAT_LINEAR_RGB : PNG_FORMAT_LINEAR_Y;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  TORCH_CHECK(png_image_write_to_memory(&png, bytes.data(), &size, 0, pixel.data(), 0, nullptr) != 0, png.message);
  bytes.resize(size);
  return bytes;
}

std::string tar_bytes(const std::vector<std::pair<std::string, std::string>>& files, bool pax) {
  std::string archive;
  for (const auto& [name, content] : files) {
    if (name.size() > 100) {
      std::string extended = tar_entry("long", pax ? pax_record("path=" + name) : name + '\0');
      // Changes the type of the entry and updates its checksum.
      extended[156] = pax ? 'x' : 'L';
      extended.replace(148, 8, "        ");
      const auto sum = std::accumulate(extended.begin(), extended.begin() + 512, 0U, [](unsigned total, char byte) {
        return total + static_cast<unsigned char>(byte);
      });
      std::array<char, 8> digits{};
      std::snprintf(digits.data(), digits.size(), "%06o", sum);
      extended.replace(148, 7, std::string(digits.data()) + '\0');
      archive += extended;
    }
    archive += tar_entry(name.substr(0, 100), content);
  }
  return archive + tar_end();
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
