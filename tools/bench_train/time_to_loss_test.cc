// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/time_to_loss.h"

#include <gtest/gtest.h>

#include <vector>

namespace phalanx::bench_train {
namespace {

constexpr auto kWindow = TimeToLoss::kWindow;

std::vector<double> steps(std::size_t count, double loss) { return std::vector<double>(count, loss); }

TEST(TimeToLoss, EndsAtTheFirstStepWhoseMeanIsLow) {
  TimeToLoss time(1.5);
  time.add(steps(kWindow, 2), 10);
  EXPECT_TRUE(time.under_way());
  time.add(steps(kWindow, 1), 40);  // after half of them the mean is 1.5; one step later it is below that
  EXPECT_EQ(kWindow + kWindow / 2 + 1, time.steps());
  EXPECT_DOUBLE_EQ(10 + 40 * (kWindow / 2 + 1.0) / kWindow, *time.seconds());
}

TEST(TimeToLoss, DoesNotChangeOnceTheLossIsReached) {
  TimeToLoss time(1);
  time.add(steps(kWindow, 0.5), 2);
  time.add(steps(5, 9), 1);
  EXPECT_EQ(kWindow, time.steps());
  EXPECT_EQ(2, time.seconds());
}

TEST(TimeToLoss, NeedsAWholeWindow) {
  TimeToLoss time(1);
  for (std::size_t step = 1; step < kWindow; ++step) time.add({0.5}, 1);
  EXPECT_FALSE(time.arrived());
  time.add({0.5}, 1);
  EXPECT_TRUE(time.arrived());
}

TEST(TimeToLoss, IsNotMeasuredIfNoLossIsGiven) {
  TimeToLoss time(0);
  time.add(steps(2 * kWindow, 0), 1);
  EXPECT_FALSE(time.arrived() || time.under_way());
  EXPECT_FALSE(time.seconds());
}

}  // namespace
}  // namespace phalanx::bench_train
