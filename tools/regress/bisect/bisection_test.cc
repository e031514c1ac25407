// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/bisect/bisection.h"

#include <gtest/gtest.h>

namespace phalanx::regress {
namespace {

// Bisects with a known answer, and returns the number of judgements.
int bisect_until(Bisection& bisection, std::size_t first_bad, const std::vector<std::size_t>& unknown = {}) {
  int steps = 0;
  while (const auto next = bisection.next()) {
    ++steps;
    const bool cannot = std::ranges::count(unknown, *next) > 0;
    bisection.record(*next, cannot ? Judgement::kUnknown : *next < first_bad ? Judgement::kGood : Judgement::kBad);
  }
  return steps;
}

TEST(Bisection, FindsEveryFirstBadCommitInLogarithmicTime) {
  for (std::size_t commits = 2; commits <= 40; ++commits) {
    for (std::size_t first_bad = 1; first_bad < commits; ++first_bad) {
      Bisection bisection(commits);
      const int most = bisection.steps_left();
      EXPECT_LE(bisect_until(bisection, first_bad), most);
      EXPECT_EQ(bisection.first_bad(), first_bad);
      EXPECT_EQ(bisection.last_good(), first_bad - 1);
    }
  }
  EXPECT_EQ(Bisection(2).steps_left(), 0);
  EXPECT_EQ(Bisection(17).steps_left(), 4);
}

TEST(Bisection, GoesAroundCommitsThatCannotBeJudged) {
  Bisection bisection(9);
  bisect_until(bisection, 6, {4, 3});
  EXPECT_EQ(bisection.first_bad(), 6u);
  EXPECT_EQ(bisection.last_good(), 5u);
}

TEST(Bisection, LeavesARangeIfTheNeighboursCannotBeJudged) {
  Bisection bisection(9);
  bisect_until(bisection, 5, {3, 4});
  EXPECT_EQ(bisection.last_good(), 2u);
  EXPECT_EQ(bisection.first_bad(), 5u);
}

TEST(Samples, AreSeparateIfMediansDifferAndMostRoundsAgree) {
  EXPECT_TRUE(are_separate({.good = {100, 101, 99, 100}, .bad = {93, 94, 92, 101}}, 0.02));
  EXPECT_FALSE(are_separate({.good = {100, 101, 99, 100}, .bad = {99.5, 99, 100, 99}}, 0.02)) << "too small";
  EXPECT_FALSE(are_separate({.good = {100, 80, 100, 100}, .bad = {90, 95, 90, 105}}, 0.02)) << "two rounds disagree";
  EXPECT_FALSE(are_separate({.good = {0, 0}, .bad = {0, 0}}, 0));
}

TEST(Samples, DecideByTheNearerMedian) {
  const Samples ends{.good = {100, 101, 99}, .bad = {90, 91, 20}};
  EXPECT_EQ(judge_commit(ends, {98, 50, 99}), Judgement::kGood);
  EXPECT_EQ(judge_commit(ends, {93, 93, 120}), Judgement::kBad);
}

}  // namespace
}  // namespace phalanx::regress
