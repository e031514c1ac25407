// SPDX-License-Identifier: Apache-2.0
#include "framework/base/wall_clock.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(WallClock, ReadsTheSystemsClock) {
  const double system = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(wall_seconds(), system, 60);
}

TEST(WallClock, JumpsByAShiftAndBack) {
  const double before = wall_seconds();
  shift_wall_clock(std::chrono::hours(-24));
  EXPECT_NEAR(wall_seconds(), before - 86400, 60);
  shift_wall_clock(std::chrono::seconds(0));
  EXPECT_NEAR(wall_seconds(), before, 60);
}

}  // namespace
}  // namespace phalanx
