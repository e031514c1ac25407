// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace phalanx {

struct Point {
  float x = 0, y = 0;
};

using Stroke = std::vector<Point>;  // the points that the pen visits, close together
using Glyph = std::vector<Stroke>;  // one way to write a digit, in the unit square: x to the right, y downwards

constexpr int kDigits = 10;

/// Returns the ways in which people write `digit` (0 to 9), at least three for each digit. Thread-safe.
const std::vector<Glyph>& handwriting(int digit);

}  // namespace phalanx
