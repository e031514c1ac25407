// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/bench_train/measure.h"

namespace phalanx::bench_train {
namespace {

double of_communication(const std::vector<StepTime>& after, const std::vector<StepTime>& overlapped,
                        const std::vector<StepTime>& limit) {
  return hidden_share(after, overlapped, limit)->of_communication;
}

// Communication costs 40 ms, of which 30 ms are hidden.
TEST(HiddenShare, IsRelativeToWhatBackwardCanHide) {
  EXPECT_DOUBLE_EQ(30.0 / 35, of_communication({{100, 0}}, {{70, 0}}, {{60, 35}}))
      << "backward can hide less than the communication";
  EXPECT_DOUBLE_EQ(30.0 / 40, of_communication({{100, 0}}, {{70, 0}}, {{60, 50}}))
      << "backward can hide more than the communication";
}

// The share does not change if the machine runs at half speed during a round.
TEST(HiddenShare, IsTheMedianOfTheRounds) {
  EXPECT_DOUBLE_EQ(0.75, of_communication({{100, 0}, {200, 0}, {100, 0}}, {{70, 0}, {140, 0}, {99, 0}},
                                          {{60, 50}, {120, 100}, {60, 50}}));
}

// 8 of the 40 ms are CPU time, so ranks wait for 32 ms.
TEST(HiddenShare, DistinguishesWaitingFromComputing) {
  EXPECT_DOUBLE_EQ(30.0 / 32, *hidden_share({{100, 0, 68}}, {{70, 0, 68}}, {{60, 50, 60}})->of_waiting);
  EXPECT_DOUBLE_EQ(30.0 / 31, *hidden_share({{100, 0, 68}}, {{70, 0, 68}}, {{60, 31, 60}})->of_waiting)
      << "ranks wait for longer than backward can hide";
}

TEST(HiddenShare, ExcludesWaitingIfRanksDoNotWait) {
  EXPECT_FALSE(hidden_share({{100, 0, 100}}, {{90, 0, 90}}, {{60, 50, 60}})->of_waiting);
}

TEST(HiddenShare, IsAbsentIfThereIsNothingToHide) { EXPECT_FALSE(hidden_share({{59, 0}}, {{58, 0}}, {{60, 50}})); }

}  // namespace
}  // namespace phalanx::bench_train
