// SPDX-License-Identifier: Apache-2.0
#include "datasets/digits/canvas.h"

#include <gtest/gtest.h>

#include <limits>

namespace phalanx {
namespace {

constexpr int kCanvasSide = 8;

std::vector<std::uint8_t> develop(const Canvas& canvas, float strength = 1, float noise = 0) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(canvas.side()) * canvas.side());
  RandomStream random(1);
  canvas.develop(strength, noise, random, bytes);
  return bytes;
}

TEST(Canvas, DrawsALineWithSoftEdges) {
  Canvas canvas(kCanvasSide);
  canvas.line({0, 3}, {7, 3}, {.radius = 1, .softness = 1});
  const auto bytes = develop(canvas);
  for (int column = 0; column < kCanvasSide; ++column) {
    std::vector<int> rows;
    for (int row = 0; row < kCanvasSide; ++row)
      rows.push_back(bytes[static_cast<std::size_t>(row * kCanvasSide + column)]);
    EXPECT_EQ(rows, (std::vector<int>{0, 0, 128, 255, 128, 0, 0, 0})) << "column " << column;
  }
}

TEST(Canvas, DrawsAPoint) {
  Canvas canvas(kCanvasSide);
  canvas.line({2, 5}, {2, 5}, {.radius = 0.5f, .softness = 1});
  auto bytes = develop(canvas);
  EXPECT_EQ(bytes[5 * kCanvasSide + 2], 255);
  bytes[5 * kCanvasSide + 2] = 0;
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(kCanvasSide * kCanvasSide));
}

TEST(Canvas, ClipsWhatLiesOutside) {
  Canvas canvas(kCanvasSide);
  canvas.line({-50, -50}, {-40, 1e30f}, {.radius = 2, .softness = 1});
  canvas.line({3, 1e30f}, {4, std::numeric_limits<float>::max()}, {.radius = 2, .softness = 1});
  EXPECT_EQ(develop(canvas), std::vector<std::uint8_t>(kCanvasSide * kCanvasSide));
}

TEST(Canvas, DevelopsInkByItsStrength) {
  Canvas canvas(kCanvasSide);
  canvas.line({0, 4}, {7, 4}, {.radius = 20, .softness = 1});
  EXPECT_EQ(develop(canvas, 0.5f), std::vector<std::uint8_t>(kCanvasSide * kCanvasSide, 128));
}

TEST(Canvas, KeepsNoiseWithinItsBounds) {
  Canvas canvas(64);
  canvas.line({0, 32}, {63, 32}, {.radius = 100, .softness = 1});
  double sum = 0;
  for (const int byte : develop(canvas, 0.5f, 0.1f)) {
    EXPECT_NEAR(byte, 127.5, 26);
    sum += byte;
  }
  EXPECT_NEAR(sum / (64 * 64), 127.5, 1);
}

TEST(Canvas, IsBlankOnceCleared) {
  Canvas canvas(kCanvasSide);
  canvas.line({0, 3}, {7, 3}, {});
  canvas.clear();
  EXPECT_EQ(develop(canvas), std::vector<std::uint8_t>(kCanvasSide * kCanvasSide));
}

}  // namespace
}  // namespace phalanx
