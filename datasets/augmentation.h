// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "datasets/random_stream.h"

namespace phalanx {

/// Random changes of training images that keep their class. He et al. 2015 (Deep Residual Learning for Image
/// Recognition, section 4.2) train on CIFAR-10 with {.padding = 4, .flip = true}.
struct Augmentation {
  std::int64_t padding = 0;  // pixels of black border from which an image-sized crop is taken, >= 0
  bool flip = false;         // mirrors images left to right with probability 1/2

  bool any() const { return padding > 0 || flip; }
};

/// The change of one image. Pixel [row, column] of the result is pixel [row + top, column + left] of the image, or
/// black if the image has no such pixel. If `flip`, the result is then mirrored left to right.
struct ImageChange {
  std::int64_t top = 0, left = 0;  // each in [-padding, padding]
  bool flip = false;
};

/// Draws three values (top, left, flip) from `random`.
ImageChange draw_change(const Augmentation& augmentation, RandomStream& random);

/// Applies `change` to every channel of one image of bytes [channels, height, width] = `shape` and writes the result to
/// `out`, which must not overlap `in`.
void apply_change(const ImageChange& change, const std::array<std::int64_t, 3>& shape, const std::uint8_t* in,
                  std::uint8_t* out);

}  // namespace phalanx
