// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/encode.h"

#include <c10/util/Exception.h>
#include <png.h>

#include <array>

namespace phalanx {

std::string encode_png(const at::Tensor& image) {
  constexpr std::array<png_uint_32, 5> kFormats{0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  TORCH_CHECK(image.dim() == 3 && image.scalar_type() == at::kByte, "not an image: ", image.sizes());
  const auto channels = image.size(0);
  TORCH_CHECK(channels >= 1 && channels <= 4, "an image of ", channels, " channels");
  const at::Tensor pixels = image.permute({1, 2, 0}).contiguous();
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.size(1));
  png.width = static_cast<png_uint_32>(image.size(2));
  png.format = kFormats.at(static_cast<std::size_t>(channels));
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  const int written = png_image_write_to_memory(&png, bytes.data(), &size, 0, pixels.const_data_ptr(), 0, nullptr);
  TORCH_CHECK(written != 0, "libpng: ", png.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace phalanx
