// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/restarts.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "framework/base/error.h"

namespace phalanx {
namespace {

TEST(Restarts, AreHandedToRanks) {
  EXPECT_EQ(restarts_of_job().count, 0);
  set_restarts({.count = 3, .lost_seconds = 12.5, .wrong_ranks = {2, 0}});
  EXPECT_EQ(restarts_of_job().count, 3);
  EXPECT_EQ(restarts_of_job().lost_seconds, 12.5);
  EXPECT_THAT(restarts_of_job().wrong_ranks, ::testing::ElementsAre(2, 0));
  ::setenv("PHALANX_RESTARTS", "3 x", 1);
  EXPECT_THAT([] { restarts_of_job(); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("PHALANX_RESTARTS")));
  ::unsetenv("PHALANX_RESTARTS");
}

}  // namespace
}  // namespace phalanx
