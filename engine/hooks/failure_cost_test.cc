// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/failure_cost.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "engine/hooks/restarts.h"

namespace phalanx {
namespace {

using std::chrono::seconds;

TEST(FailureCost, IsThatOfRestartsAndOfLostRanks) {
  const auto started = std::chrono::steady_clock::now() - seconds(100);
  EXPECT_EQ(failure_cost(nullptr, started).goodput, 1);
  set_restarts({.count = 1, .lost_seconds = 10});
  const Recovery recovery{.lost = {{.rank = 3}, {.rank = 0}}, .lost_seconds = 15};
  const FailureCost cost = failure_cost(&recovery, started);
  EXPECT_EQ(cost.ranks, 2);
  EXPECT_EQ(cost.seconds, 25);
  EXPECT_NEAR(cost.goodput, 0.75, 0.05);
  EXPECT_EQ(failure_cost(&recovery, std::chrono::steady_clock::now() - seconds(1)).goodput, 0);
  ::unsetenv("PHALANX_RESTARTS");
}

}  // namespace
}  // namespace phalanx
