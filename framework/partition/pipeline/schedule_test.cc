// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/pipeline/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "framework/base/error.h"
#include "framework/partition/pipeline/timeline.h"

namespace phalanx::pipeline {
namespace {

using Kind = Action::Kind;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

bool fits(const std::string& name, const ScheduleOptions& options) {
  if (name == "interleaved") return options.micro_batches % options.ranks == 0;
  if (options.stages_per_rank > 1) return false;
  return name != "dualpipe" ||
         (options.ranks % 2 == 0 && options.micro_batches % 2 == 0 && options.micro_batches >= 2 * options.ranks);
}

class EverySchedule : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Names, EverySchedule, ::testing::ValuesIn(schedule_names()),
                         [](const auto& info) { return "of_" + info.param; });

// simulate() throws if ranks wait forever or an action is missing.
TEST_P(EverySchedule, EndsOnAnyNumberOfRanksAndMicroBatches) {
  int tried = 0;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int micro_batches = 1; micro_batches <= 32; ++micro_batches) {
      // A search for each number would take seconds.
      if (GetParam() == "zero_bubble" && micro_batches > 9 && micro_batches % 8 != 0) continue;
      for (int stages = 1; stages <= 3; ++stages) {
        const ScheduleOptions options{.ranks = ranks, .stages_per_rank = stages, .micro_batches = micro_batches};
        if (!fits(GetParam(), options)) continue;
        ++tried;
        const auto schedule = make_schedule(GetParam(), options);
        ASSERT_EQ(schedule.name, GetParam());
        ASSERT_EQ(schedule.stages, ranks * stages);
        Timeline timeline;
        ASSERT_NO_THROW(timeline = simulate(schedule)) << ranks << " ranks, " << micro_batches << " micro-batches";
        const double most = *std::ranges::max_element(timeline.live);
        if (GetParam() != "gpipe" && GetParam() != "interleaved" && GetParam() != "dualpipe") {
          ASSERT_LE(most, ranks);
        }
        if (GetParam() == "dualpipe") {
          ASSERT_LE(most, ranks + 1);
        }
      }
    }
  }
  EXPECT_GT(tried, 20);
}

TEST_P(EverySchedule, HasItsKnownBubble) {
  for (const int ranks : {2, 4, 8}) {
    for (const int stages : {1, 2}) {
      const ScheduleOptions options{.ranks = ranks, .stages_per_rank = stages, .micro_batches = 3 * ranks};
      if (!fits(GetParam(), options)) continue;
      const auto schedule = make_schedule(GetParam(), options);
      const double known = known_bubble(schedule);
      if (known < 0) continue;
      EXPECT_NEAR(simulate(schedule).bubble, known, 1e-9) << ranks << " ranks, " << stages << " stages each";
    }
  }
}

TEST(OneForwardOneBackward, HoldsFewerMicroBatchesOnLaterStages) {
  const auto timeline = simulate(make_schedule("1f1b", {.ranks = 4, .micro_batches = 9}));
  EXPECT_EQ(timeline.live, (std::vector<double>{4, 3, 2, 1}));
  EXPECT_EQ(simulate(make_schedule("gpipe", {.ranks = 4, .micro_batches = 9})).live, (std::vector<double>(4, 9)));
}

TEST(ZeroBubble, WaitsLessThan1f1bWithTheSameMemory) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const int micro_batches : {ranks, 2 * ranks, 32}) {
      const ScheduleOptions options{.ranks = ranks, .micro_batches = micro_batches};
      const double plain = simulate(make_schedule("1f1b", options)).bubble;
      EXPECT_LT(simulate(make_schedule("zero_bubble", options)).bubble, plain) << ranks << " " << micro_batches;
    }
  }
}

TEST(ZeroBubble, RespectsItsMemoryLimitAndWaitsLessWithMore) {
  double before = 1;
  for (const int limit : {4, 6, 8}) {
    const auto timeline =
        simulate(make_schedule("zero_bubble", {.ranks = 4, .micro_batches = 12, .memory_limit = limit}));
    EXPECT_LE(*std::ranges::max_element(timeline.live), limit);
    EXPECT_LE(timeline.bubble_without_stop, before);
    EXPECT_GE(timeline.bubble_without_stop, 0);
    EXPECT_GE(timeline.bubble, timeline.bubble_without_stop);
    before = timeline.bubble_without_stop;
  }
  EXPECT_LT(before, 0.01) << "with twice the memory of 1f1b";
}

TEST(ZeroBubble, IsSearchedForTheCosts) {
  const Costs slow_forward{.forward = 2, .input_gradient = 1.5, .weight_gradient = 1, .transfer = 0.25};
  for (const auto& costs : {Costs{}, slow_forward}) {
    const ScheduleOptions options{.ranks = 4, .micro_batches = 8, .costs = costs};
    EXPECT_LT(simulate(make_schedule("zero_bubble", options), costs).length,
              simulate(make_schedule("1f1b", options), costs).length);
  }
}

TEST(Dualpipe, HasEachStageOnTwoRanks) {
  const auto schedule = make_schedule("dualpipe", {.ranks = 4, .micro_batches = 8});
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(schedule.stages_of(rank), (std::vector<int>{std::min(rank, 3 - rank), std::max(rank, 3 - rank)}));
  }
  EXPECT_EQ(schedule.rank_of(0, 0), 0);
  EXPECT_EQ(schedule.rank_of(0, 7), 3);
  EXPECT_LT(simulate(schedule).bubble, simulate(make_schedule("1f1b", {.ranks = 4, .micro_batches = 8})).bubble);
}

TEST(MakeSchedule, RefusesOptionsThatDoNotFitWithAdvice) {
  const auto refused = [](const std::string& name, const ScheduleOptions& options, const std::string& why) {
    EXPECT_THAT([&] { make_schedule(name, options); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
  };
  refused("2f2b", {}, "\"2f2b\" is not known; known: gpipe, 1f1b, interleaved, zb_h1, zero_bubble, dualpipe");
  refused("1f1b", {.ranks = 0}, "at least one rank");
  refused("1f1b", {.ranks = 2, .stages_per_rank = 2, .micro_batches = 4}, "one stage for each rank");
  refused("interleaved", {.ranks = 4, .stages_per_rank = 2, .micro_batches = 6},
          "6 is not a multiple of 4; use 4 or 8");
  refused("interleaved", {.ranks = 4, .stages_per_rank = 2, .micro_batches = 3}, "use 4");
  refused("dualpipe", {.ranks = 3, .micro_batches = 8}, "not 3; use 4");
  refused("dualpipe", {.ranks = 4, .micro_batches = 6}, "not 6 on 4; use 8");
  refused("zero_bubble", {.ranks = 4, .micro_batches = 8, .memory_limit = -1}, "memory_limit");
  refused("1f1b", {.ranks = 4, .micro_batches = 8, .memory_limit = 6}, "1f1b does not support memory_limit");
}

// Good schedules into which a fault is introduced.
class InvalidSchedule : public ::testing::Test {
 protected:
  void expect_error(const std::string& what) const {
    EXPECT_THAT([this] { simulate(schedule_); }, ThrowsMessage<Error>(HasSubstr(what)));
  }
  std::vector<Action>& actions(std::size_t rank) { return schedule_.actions[rank]; }
  std::size_t place(std::size_t rank, const Action& action) {
    return static_cast<std::size_t>(std::ranges::find(actions(rank), action) - actions(rank).begin());
  }
  Schedule schedule_ = make_schedule("1f1b", {.ranks = 3, .micro_batches = 4});
};

TEST_F(InvalidSchedule, ABackwardIsMissing) {
  auto& own = actions(1);
  own.erase(own.begin() + static_cast<std::ptrdiff_t>(place(1, {Kind::kBackward, 1, 2})));
  expect_error("the gradient of the input of micro-batch 2 on stage 1 0 times");
}

TEST_F(InvalidSchedule, AForwardOccursTwice) {
  actions(0).push_back({Kind::kForward, 0, 1});
  expect_error("the forward of micro-batch 1 on stage 0 2 times");
}

TEST_F(InvalidSchedule, TheGradientOfTheWeightsIsMissing) {
  actions(2)[place(2, {Kind::kBackward, 2, 0})].kind = Kind::kInputGradient;
  expect_error("the gradient of the weights of micro-batch 0 on stage 2 0 times");
}

TEST_F(InvalidSchedule, ABackwardComesBeforeItsForward) {
  auto& own = actions(2);
  std::swap(own[place(2, {Kind::kForward, 2, 0})], own[place(2, {Kind::kBackward, 2, 0})]);
  expect_error("ranks wait for ever: rank");
}

TEST_F(InvalidSchedule, TwoRanksWaitForEachOther) {
  auto& own = actions(0);
  std::swap(own[place(0, {Kind::kForward, 0, 3})], own[place(0, {Kind::kBackward, 0, 3})]);
  expect_error("rank 0 with the backward of micro-batch 3 on stage 0 for the forward of micro-batch 3 on stage 0");
}

TEST_F(InvalidSchedule, ABackwardIsOnAnotherRankThanItsForward) {
  auto& own = actions(1);
  own.erase(own.begin() + static_cast<std::ptrdiff_t>(place(1, {Kind::kBackward, 1, 3})));
  actions(2).push_back({Kind::kBackward, 1, 3});
  expect_error("the backward of micro-batch 3 on stage 1 on rank 2, but its forward on rank 1");
}

TEST_F(InvalidSchedule, AStageDoesNotExist) {
  actions(0).push_back({Kind::kForward, 3, 0});
  expect_error("stage 3, which does not exist");
}

}  // namespace
}  // namespace phalanx::pipeline
