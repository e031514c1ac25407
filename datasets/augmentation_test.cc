// SPDX-License-Identifier: Apache-2.0
#include "datasets/augmentation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace phalanx {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Two channels of 2 x 3 pixels, none of them black.
const Bytes kImage{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
constexpr std::array<std::int64_t, 3> kShape{2, 2, 3};

Bytes augmented(const Augmentation& augmentation, std::uint64_t seed) {
  Bytes out(kImage.size(), 99);
  RandomStream random(seed);
  apply_change(draw_change(augmentation, random), kShape, kImage.data(), out.data());
  return out;
}

std::set<Bytes> all_results(const Augmentation& augmentation) {
  std::set<Bytes> results;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) results.insert(augmented(augmentation, seed));
  return results;
}

// Returns the crop at (top, left) of the image, computed pixel by pixel.
Bytes expected_crop(std::int64_t top, std::int64_t left, bool flip) {
  Bytes out;
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    for (std::int64_t row = 0; row < 2; ++row) {
      for (std::int64_t column = 0; column < 3; ++column) {
        const auto y = row + top, x = (flip ? 2 - column : column) + left;
        const bool inside = y >= 0 && y < 2 && x >= 0 && x < 3;
        out.push_back(inside ? kImage[static_cast<std::size_t>((channel * 2 + y) * 3 + x)] : 0);
      }
    }
  }
  return out;
}

TEST(Augmentation, NoneLeavesTheImageUnchanged) {
  EXPECT_FALSE(Augmentation().any());
  EXPECT_EQ(all_results({}), std::set<Bytes>{kImage});
}

TEST(Augmentation, AFlipExchangesLeftAndRight) {
  const Bytes flipped{3, 2, 1, 6, 5, 4, 13, 12, 11, 16, 15, 14};
  EXPECT_EQ(all_results({.flip = true}), (std::set<Bytes>{kImage, flipped}));
}

TEST(Augmentation, ACropHasBlackWhereThePaddingWas) {
  std::set<Bytes> crops;
  for (const int top : {-1, 0, 1}) {
    for (const int left : {-1, 0, 1}) crops.insert(expected_crop(top, left, false));
  }
  EXPECT_EQ(crops.size(), 9u);
  EXPECT_EQ(all_results({.padding = 1}), crops) << "each of the nine, and no other";
}

TEST(Augmentation, FlipsWhatItHasCropped) {
  std::set<Bytes> crops;
  for (int top = -1; top <= 1; ++top) {
    for (int left = -1; left <= 1; ++left) {
      for (const bool flip : {false, true}) crops.insert(expected_crop(top, left, flip));
    }
  }
  EXPECT_EQ(all_results({.padding = 1, .flip = true}), crops);
}

TEST(Augmentation, APaddingMayBeWiderThanTheImage) {
  const auto results = all_results({.padding = 5});
  EXPECT_TRUE(results.contains(Bytes(kImage.size(), 0)));
  EXPECT_TRUE(results.contains(kImage));
}

TEST(Augmentation, EveryOffsetIsEquallyLikely) {
  int unmoved = 0, flipped = 0;
  for (std::uint64_t seed = 0; seed < 9000; ++seed) unmoved += augmented({.padding = 1}, seed) == kImage;
  for (std::uint64_t seed = 0; seed < 9000; ++seed) flipped += augmented({.flip = true}, seed) != kImage;
  EXPECT_NEAR(unmoved, 1000, 120);
  EXPECT_NEAR(flipped, 4500, 200);
}

// The drawn values are part of the meaning of a seed: if they change, all training results change.
TEST(Augmentation, DrawsTheSameValuesOnEveryPlatform) {
  RandomStream random(3);
  Bytes out(kImage.size());
  apply_change(draw_change({.padding = 1, .flip = true}, random), kShape, kImage.data(), out.data());
  EXPECT_EQ(out, (Bytes{0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 13, 12})) << "one row up, one pixel from the right, flipped";
  RandomStream same(3);
  for (int i = 0; i < 3; ++i) same.next();
  EXPECT_EQ(random.next(), same.next()) << "three values for an image";
}

}  // namespace
}  // namespace phalanx
