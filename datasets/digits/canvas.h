// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "datasets/digits/glyphs.h"
#include "datasets/random_stream.h"

namespace phalanx {

/// The tip of a pen, in pixels.
struct Pen {
  float radius = 1;
  float softness = 1;  // width of the edge where ink turns to paper, > 0
};

/// A square of pixels from 0 (paper) to 1 (ink). The point {0, 0} is the centre of the top left pixel.
///
/// Uses only +, -, *, / and square roots, which IEEE 754 rounds the same way everywhere, so equal calls give equal
/// bytes.
class Canvas {
 public:
  explicit Canvas(int side) : side_(side), ink_(static_cast<std::size_t>(side) * side) {}

  int side() const { return side_; }

  void clear();

  void line(const Point& from, const Point& to, const Pen& pen);  // anti-aliased, with round ends; clipped

  /// Writes the pixels as bytes [side, side]: ink times `strength`, plus noise with a triangular distribution in
  /// [-noise, noise], clamped to the range from paper to ink.
  void develop(float strength, float noise, RandomStream& random, std::span<std::uint8_t> bytes) const;

 private:
  int side_;
  std::vector<float> ink_;  // [side, side]
};

}  // namespace phalanx
