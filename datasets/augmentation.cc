// SPDX-License-Identifier: Apache-2.0
#include "datasets/augmentation.h"

#include <algorithm>
#include <cstring>

namespace phalanx {
namespace {

// Sets out[i] to in[i + offset], or to black if that does not exist. |offset| may exceed the length.
void shift_row(const std::uint8_t* in, std::uint8_t* out, std::int64_t length, std::int64_t offset) {
  const std::int64_t begin = std::clamp<std::int64_t>(-offset, 0, length);
  const std::int64_t end = std::clamp<std::int64_t>(length - offset, begin, length);
  std::memset(out, 0, static_cast<std::size_t>(begin));
  std::memcpy(out + begin, in + begin + offset, static_cast<std::size_t>(end - begin));
  std::memset(out + end, 0, static_cast<std::size_t>(length - end));
}

std::int64_t draw_offset(RandomStream& random, std::int64_t padding) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * padding + 1))) - padding;
}

}  // namespace

ImageChange draw_change(const Augmentation& augmentation, RandomStream& random) {
  ImageChange change;
  change.top = draw_offset(random, augmentation.padding);
  change.left = draw_offset(random, augmentation.padding);
  change.flip = random.below(2) == 1 && augmentation.flip;
  return change;
}

void apply_change(const ImageChange& change, const std::array<std::int64_t, 3>& shape, const std::uint8_t* in,
                  std::uint8_t* out) {
  const auto [channels, height, width] = shape;
  for (std::int64_t channel = 0; channel < channels; ++channel, in += height * width) {
    for (std::int64_t row = 0; row < height; ++row, out += width) {
      const std::int64_t from = row + change.top;
      if (from >= 0 && from < height) {
        shift_row(in + from * width, out, width, change.left);
      } else {
        std::memset(out, 0, static_cast<std::size_t>(width));
      }
      if (change.flip) std::reverse(out, out + width);
    }
  }
}

}  // namespace phalanx
