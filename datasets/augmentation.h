#pragma once

#include <array>
#include <cstdint>

#include "datasets/random_stream.h"

namespace phalanx {

/// Random changes of training images that leave their class as it is. He et al. 2015 (Deep Residual Learning for Image
/// Recognition, section 4.2) train on CIFAR-10 with {.padding = 4, .flip = true}.
struct Augmentation {
  std::int64_t padding = 0;  // black pixels around the image, from which a part of its size is cut, >= 0
  bool flip = false;         // left and right are exchanged in every second image

  bool any() const { return padding > 0 || flip; }
};

/// Writes one image of bytes, [channels, height, width] = `shape`, to `out`, which does not overlap it: cut at a random
/// place of the padded image, then perhaps flipped, alike in all channels. Draws three values (top, left, flip) from
/// `random`.
void augment(const Augmentation& augmentation, RandomStream& random, const std::array<std::int64_t, 3>& shape,
             const std::uint8_t* in, std::uint8_t* out);

}  // namespace phalanx
