// SPDX-License-Identifier: Apache-2.0
#include "datasets/digits/drawing.h"

#include <algorithm>
#include <array>
#include <span>

#include "datasets/digits/canvas.h"
#include "datasets/digits/glyphs.h"
#include "datasets/random_stream.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

// Displaces every point a little, and neighbouring points similarly: strokes that meet still meet, and straight strokes
// bend.
class Warp {
 public:
  explicit Warp(RandomStream& random) {
    constexpr float kReach = 0.09f;
    for (auto& node : nodes_) node = {random.between(-kReach, kReach), random.between(-kReach, kReach)};
  }

  Point operator()(const Point& p) const {
    const float x = std::clamp(p.x, 0.f, 1.f) * (kNodes - 1), y = std::clamp(p.y, 0.f, 1.f) * (kNodes - 1);
    const int column = std::min(static_cast<int>(x), kNodes - 2), row = std::min(static_cast<int>(y), kNodes - 2);
    const float right = x - static_cast<float>(column), down = y - static_cast<float>(row);
    const auto* n = &nodes_[static_cast<std::size_t>(row * kNodes + column)];
    const auto blend = [&](float Point::* c) {
      const float above = n[0].*c + right * (n[1].*c - n[0].*c);
      const float below = n[kNodes].*c + right * (n[kNodes + 1].*c - n[kNodes].*c);
      return above + down * (below - above);
    };
    return {p.x + blend(&Point::x), p.y + blend(&Point::y)};
  }

 private:
  static constexpr int kNodes = 3;
  std::array<Point, kNodes * kNodes> nodes_;  // displacements on a grid over the unit square
};

// Maps the unit square to pixels: stretches, slants, rotates and moves it.
class Placement {
 public:
  Placement(RandomStream& random, float side) : move_{(side - 1) / 2, (side - 1) / 2} {
    const float height = side * random.between(0.55f, 0.76f), width = height * random.between(0.5f, 0.85f);
    const float slant = random.between(-0.35f, 0.25f);  // mostly to the right, as most people write
    // Tangent of half the angle. It gives the rotation without a sine, which libraries round differently.
    const float half = random.between(-0.12f, 0.12f);
    const float cosine = (1 - half * half) / (1 + half * half), sine = 2 * half / (1 + half * half);
    x_ = {width * cosine, width * sine};
    y_ = {height * (slant * cosine - sine), height * (slant * sine + cosine)};
    move_.x += side * random.between(-0.08f, 0.08f);
    move_.y += side * random.between(-0.08f, 0.08f);
  }

  Point operator()(const Point& p) const {
    const float x = p.x - 0.5f, y = p.y - 0.5f;
    return {x * x_.x + y * y_.x + move_.x, x * x_.y + y * y_.y + move_.y};
  }

 private:
  Point x_, y_;  // the images of a unit step to the right and of one down, in pixels
  Point move_;
};

void draw(int digit, RandomStream& random, Canvas& canvas, std::span<std::uint8_t> bytes) {
  const auto& ways = handwriting(digit);
  const auto& glyph = ways[random.below(ways.size())];
  const auto side = static_cast<float>(canvas.side());
  const Warp warp(random);
  const Placement place(random, side);
  const float radius = side * random.between(0.028f, 0.06f), softness = random.between(0.9f, 1.8f);
  canvas.clear();
  for (const auto& stroke : glyph) {
    Point from = place(warp(stroke.front()));
    for (const auto& point : stroke) {
      const Point to = place(warp(point));
      canvas.line(from, to, {.radius = radius, .softness = softness});
      from = to;
    }
  }
  const float strength = random.between(0.7f, 1.f), noise = random.between(0.02f, 0.2f);
  canvas.develop(strength, noise, random, bytes);
}

}  // namespace

Images draw_digits(std::int64_t count, std::int64_t side, std::int64_t seed, std::uint64_t stream) {
  const auto bytes = static_cast<std::size_t>(side * side);
  Images images{.pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(count) * bytes),
                .labels = std::vector<std::int64_t>(static_cast<std::size_t>(count))};
  const auto images_seed = mix(static_cast<std::uint64_t>(seed), stream);
  Canvas canvas(static_cast<int>(side));
  for (std::size_t i = 0; i < images.labels.size(); ++i) {
    RandomStream random(mix(images_seed, i));
    const int digit = static_cast<int>(i % kDigits);
    images.labels[i] = digit;
    draw(digit, random, canvas, std::span(images.pixels).subspan(i * bytes, bytes));
  }
  return images;
}

}  // namespace phalanx
