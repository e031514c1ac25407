// SPDX-License-Identifier: Apache-2.0
#include "framework/base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace phalanx {
namespace {

// These values are fixed for good: a change of them changes the order of samples in every training run.
TEST(Mix, IsTheSameInEveryRelease) {
  EXPECT_EQ(mix(0, 0), 0xa706dd2f4d197e6f);
  EXPECT_EQ(mix(1, 0), 0x5e41ab087439611e);
  EXPECT_EQ(mix(42, 7), 0xbc16a3d4cc48678e);
}

TEST(Mix, SeparatesNeighbouringSeedsAndStreams) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (std::uint64_t stream = 0; stream < 100; ++stream) seen.insert(mix(seed, stream));
  }
  EXPECT_EQ(seen.size(), 10000);
}

TEST(Mix, ChangesHalfOfTheBits) {
  int changed = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) changed += std::popcount(mix(i, 0) ^ mix(i, 1));
  EXPECT_NEAR(changed / 1000.0, 32, 1);
}

TEST(Mix, Nests) { EXPECT_NE(mix(mix(1, 2), 3), mix(mix(1, 3), 2)); }

}  // namespace
}  // namespace phalanx
