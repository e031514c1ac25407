// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/exif.h"

#include <ATen/ops/flip.h>

#include <cstddef>
#include <cstdint>

namespace phalanx::images {
namespace {

// Reads the numbers of a TIFF file in its byte order. Bytes outside of the file read as 0.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), big_endian_(bytes.starts_with("MM")) {}

  std::uint32_t number(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[offset + (big_endian_ ? i : size - 1 - i)]);
    }
    return value;
  }

  bool is_valid() const { return (bytes_.starts_with("II") || big_endian_) && number(2, 2) == 42; }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::string_view bytes) {
  constexpr std::uint32_t kOrientation = 0x0112, kShort = 3;
  constexpr std::size_t kEntry = 12;  // size in bytes: tag, type, count and value
  const Tiff tiff(bytes);
  if (!tiff.is_valid()) return 1;
  const std::size_t directory = tiff.number(4, 4);
  const auto entries = tiff.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto entry = directory + 2 + i * kEntry;
    if (tiff.number(entry, 2) != kOrientation || tiff.number(entry + 2, 2) != kShort) continue;
    const auto orientation = tiff.number(entry + 8, 2);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

at::Tensor upright(const at::Tensor& image, int orientation) {
  constexpr std::int64_t kHeight = 0, kWidth = 1;
  switch (orientation) {
    case 2:
      return image.flip({kWidth});
    case 3:
      return image.flip({kHeight, kWidth});
    case 4:
      return image.flip({kHeight});
    case 5:
      return image.transpose(kHeight, kWidth);
    case 6:
      return image.transpose(kHeight, kWidth).flip({kWidth});
    case 7:
      return image.transpose(kHeight, kWidth).flip({kHeight, kWidth});
    case 8:
      return image.transpose(kHeight, kWidth).flip({kHeight});
    default:
      return image;
  }
}

}  // namespace phalanx::images
