#include "tools/bench_train/hidden_share.h"

#include <gtest/gtest.h>

namespace phalanx::bench_train {
namespace {

// Communication costs 40 ms, and 30 of them are hidden.
TEST(HiddenShare, IsOfWhatBackwardCanHide) {
  EXPECT_DOUBLE_EQ(30.0 / 35, *hidden_share({{100, 0}}, {{70, 0}}, {{60, 35}})) << "less than communication";
  EXPECT_DOUBLE_EQ(30.0 / 40, *hidden_share({{100, 0}}, {{70, 0}}, {{60, 50}})) << "more";
}

// A round in which the machine is half as fast says the same.
TEST(HiddenShare, IsTheMedianOfTheRounds) {
  EXPECT_DOUBLE_EQ(0.75, *hidden_share({{100, 0}, {200, 0}, {100, 0}}, {{70, 0}, {140, 0}, {99, 0}},
                                       {{60, 50}, {120, 100}, {60, 50}}));
}

TEST(HiddenShare, IsAbsentWhereThereIsNothingToHide) { EXPECT_FALSE(hidden_share({{59, 0}}, {{58, 0}}, {{60, 50}})); }

}  // namespace
}  // namespace phalanx::bench_train
