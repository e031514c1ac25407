// SPDX-License-Identifier: Apache-2.0
#include "datasets/digits/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <vector>

namespace phalanx {
namespace {

constexpr std::int64_t kSide = 28;
constexpr std::size_t kPixels = kSide * kSide;

std::uint64_t fnv1a(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

std::set<std::vector<std::uint8_t>> distinct(const Images& images) {
  std::set<std::vector<std::uint8_t>> all;
  for (auto pixel = images.pixels.begin(); pixel != images.pixels.end(); pixel += kPixels) {
    all.emplace(pixel, pixel + kPixels);
  }
  return all;
}

// A change of this value changes the result of every run on these digits.
TEST(DrawDigits, DrawsTheSameOnEveryPlatformAndInEveryRelease) {
  EXPECT_EQ(fnv1a(draw_digits(1000, kSide, 1, 0).pixels), 4760236646264831406u);
}

TEST(DrawDigits, ImagesDoNotDependOnHowManyAreDrawn) {
  const auto few = draw_digits(20, kSide, 1, 0), many = draw_digits(50, kSide, 1, 0);
  EXPECT_TRUE(std::equal(few.pixels.begin(), few.pixels.end(), many.pixels.begin()));
}

TEST(DrawDigits, StreamsAndSeedsShareNoImage) {
  auto all = distinct(draw_digits(2000, kSide, 1, 0));
  all.merge(distinct(draw_digits(2000, kSide, 1, 1)));
  all.merge(distinct(draw_digits(2000, kSide, 2, 0)));
  EXPECT_EQ(all.size(), 6000);
}

TEST(DrawDigits, EveryDigitIsEquallyFrequent) {
  std::vector<int> counts(10);
  for (const auto label : draw_digits(1000, kSide, 1, 0).labels) ++counts[static_cast<std::size_t>(label)];
  EXPECT_EQ(counts, std::vector<int>(10, 100));
}

TEST(DrawDigits, EveryImageHasInkAndPaper) {
  const auto images = draw_digits(2000, kSide, 1, 0);
  for (std::size_t i = 0; i < images.labels.size(); ++i) {
    const auto* image = images.pixels.data() + i * kPixels;
    const auto ink = std::count_if(image, image + kPixels, [](int pixel) { return pixel > 128; });
    EXPECT_GT(ink, 15) << "image " << i << ", a " << images.labels[i];
    EXPECT_LT(ink, 300) << "image " << i << ", a " << images.labels[i];
  }
}

TEST(DrawDigits, HasTheStatisticsThatItStates) {
  const auto images = draw_digits(10000, kSide, 1, 0);
  double sum = 0, squares = 0;
  for (const auto pixel : images.pixels) {
    sum += pixel / 255.0;
    squares += pixel / 255.0 * (pixel / 255.0);
  }
  const double mean = sum / static_cast<double>(images.pixels.size());
  EXPECT_NEAR(mean, kDigitsStatistics.mean, 0.002);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(images.pixels.size()) - mean * mean), kDigitsStatistics.deviation,
              0.003);
}

TEST(DrawDigits, DrawsAtAnySize) {
  for (const std::int64_t side : {16, 33, 64}) {
    const auto images = draw_digits(10, side, 1, 0);
    EXPECT_EQ(std::ssize(images.pixels), 10 * side * side);
  }
}

}  // namespace
}  // namespace phalanx
