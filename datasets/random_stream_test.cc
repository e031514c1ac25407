// SPDX-License-Identifier: Apache-2.0
#include "datasets/random_stream.h"

#include <gtest/gtest.h>

#include <array>

namespace phalanx {
namespace {

TEST(RandomStream, IsSplitMix64) {
  RandomStream stream(0);  // expected values from the authors' reference code
  EXPECT_EQ(stream.next(), 0xe220a8397b1dcdaf);
  EXPECT_EQ(stream.next(), 0x6e789e6aa1b965f4);
  EXPECT_EQ(stream.next(), 0x06c45d188009454f);
}

TEST(RandomStream, DrawsTheSameNumbersBelowABoundOnEveryPlatform) {
  RandomStream stream(7);
  for (const std::uint64_t expected : {3, 0, 9, 5, 4, 2, 4, 3, 1, 4}) EXPECT_EQ(stream.below(10), expected);
}

TEST(RandomStream, DrawsEveryValueEquallyOften) {
  RandomStream stream(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts[stream.below(counts.size())];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
}

// The bound is 3/4 of the range. Without rejection, the thirds of [0, bound) would be drawn with unequal probability.
TEST(RandomStream, HasNoBiasForHugeBounds) {
  RandomStream stream(1);
  constexpr std::uint64_t kBound = 3ULL << 62;
  int lowest_third = 0;
  for (int i = 0; i < 30000; ++i) lowest_third += stream.below(kBound) % 3 == 0;
  EXPECT_NEAR(lowest_third, 10000, 400);
}

TEST(RandomStream, DrawsNumbersBelowOneOrAboveZeroFromTheSameBits) {
  RandomStream stream(1), same(1);
  for (int i = 0; i < 10000; ++i) {
    const double below_one = stream.below_one();
    ASSERT_GE(below_one, 0);
    ASSERT_LT(below_one, 1);
    ASSERT_EQ(same.uniform(), below_one + 0x1p-53);
  }
}

TEST(RandomStream, StaysWithinAnInterval) {
  RandomStream stream(1);
  float sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const float value = stream.between(-1, 3);
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 3);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 1, 0.05);
}

}  // namespace
}  // namespace phalanx
