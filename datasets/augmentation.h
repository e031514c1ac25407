// SPDX-License-Identifier: Apache-2.0
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

/// How one image is changed: pixel [row, column] becomes that of [row + top, column + left], or black where there is
/// none, and then left and right are exchanged if it is flipped.
struct ImageChange {
  std::int64_t top = 0, left = 0;  // each in [-padding, padding]
  bool flip = false;
};

/// Draws three values (top, left, flip) from `random`.
ImageChange draw_change(const Augmentation& augmentation, RandomStream& random);

/// Writes one image of bytes, [channels, height, width] = `shape`, to `out`, which does not overlap it, changed alike
/// in all channels.
void apply_change(const ImageChange& change, const std::array<std::int64_t, 3>& shape, const std::uint8_t* in,
                  std::uint8_t* out);

}  // namespace phalanx
