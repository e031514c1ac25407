// SPDX-License-Identifier: Apache-2.0
#include "launch/backoff.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(Backoff, DoublesUpToAMinute) {
  EXPECT_EQ(backoff(3, 0).count(), 3);
  EXPECT_EQ(backoff(3, 2).count(), 12);
  EXPECT_EQ(backoff(3, 5).count(), 60);
  EXPECT_EQ(backoff(3, 1'000'000).count(), 60);
}

TEST(Backoff, IsNeverShorterThanItsBeginning) { EXPECT_EQ(backoff(600, 3).count(), 600); }

TEST(Backoff, MayBeNone) { EXPECT_EQ(backoff(0, 1'000'000).count(), 0); }

}  // namespace
}  // namespace phalanx
