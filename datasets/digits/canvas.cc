// SPDX-License-Identifier: Apache-2.0
#include "datasets/digits/canvas.h"

#include <algorithm>
#include <cmath>

namespace phalanx {
namespace {

struct Range {
  int begin, end;
};

// Returns the pixels of one axis that a line from a to b can reach. Clamps before the conversion to int, which is
// undefined for floats out of range.
Range reach(float a, float b, float margin, int side) {
  const auto limit = static_cast<float>(side);
  const float low = std::clamp(std::min(a, b) - margin, 0.f, limit);
  const float high = std::clamp(std::max(a, b) + margin + 1, 0.f, limit);
  return {static_cast<int>(low), static_cast<int>(high)};
}

}  // namespace

void Canvas::clear() { std::fill(ink_.begin(), ink_.end(), 0.f); }

void Canvas::line(const Point& from, const Point& to, const Pen& pen) {
  const float margin = pen.radius + pen.softness / 2;
  const float along_x = to.x - from.x, along_y = to.y - from.y;
  const float per_length = 1 / (along_x * along_x + along_y * along_y + 1e-12f);  // a line may be a single point
  const float per_softness = 1 / pen.softness;
  const auto rows = reach(from.y, to.y, margin, side_), columns = reach(from.x, to.x, margin, side_);
  for (int row = rows.begin; row < rows.end; ++row) {
    float* ink = &ink_[static_cast<std::size_t>(row * side_)];
    const float y = static_cast<float>(row) - from.y;
    for (int column = columns.begin; column < columns.end; ++column) {
      const float x = static_cast<float>(column) - from.x;
      const float t = std::clamp((x * along_x + y * along_y) * per_length, 0.f, 1.f);
      const float away_x = x - t * along_x, away_y = y - t * along_y;
      const float distance = std::sqrt(away_x * away_x + away_y * away_y);
      const float cover = std::min((margin - distance) * per_softness, 1.f);
      ink[column] = std::max(ink[column], cover);
    }
  }
}

void Canvas::develop(float strength, float noise, RandomStream& random, std::span<std::uint8_t> bytes) const {
  strength *= 255;
  std::uint64_t bits = 0;  // enough for four pixels; the sum of two random bytes has a triangular distribution
  for (std::size_t i = 0; i < ink_.size(); ++i) {
    bits = i % 4 == 0 ? random.next() : bits >> 16;
    const int triangular = static_cast<int>(bits & 255) + static_cast<int>(bits >> 8 & 255) - 255;
    const float value = ink_[i] * strength + noise * static_cast<float>(triangular);
    bytes[i] = static_cast<std::uint8_t>(std::clamp(value, 0.f, 255.f) + 0.5f);
  }
}

}  // namespace phalanx
