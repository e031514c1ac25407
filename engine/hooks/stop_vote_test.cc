// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/stop_vote.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <limits>
#include <vector>

#include "engine/hooks/delayed_vote.h"
#include "engine/testing/fakes.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct Outcome {
  std::vector<std::int64_t> steps;  // by rank
  std::vector<char> stopped;
};

// Trains for `max_steps` steps. Rank r is asked to stop when it has done asked[r] steps.
Outcome train_ranks(const std::vector<std::int64_t>& asked, std::int64_t max_steps = 20, std::int64_t delay = 1) {
  const auto ranks = asked.size();
  Outcome outcome{std::vector<std::int64_t>(ranks), std::vector<char>(ranks)};
  testing::run_ranks("inproc", static_cast<int>(ranks), [&](const CommunicatorPtr& world) {
    const auto rank = static_cast<std::size_t>(world->rank());
    testing::FakeEngine fake(max_steps);
    std::int64_t step = 0;
    fake.engine.on(Event::kUpdate, HookPhase::kFirst, [&](State& state) { step = state.step; });
    StopVote vote(world, [&] { return step >= asked[rank]; }, [] { return false; }, delay);
    vote.attach(fake.engine);
    outcome.steps[rank] = fake.train({.epochs = 1}).step;
    outcome.stopped[rank] = vote.stopped();
  });
  return outcome;
}

class StopVotes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, StopVotes, ::testing::Range(1, 5));

TEST_P(StopVotes, AllStopAfterTheSameStepWhicheverRankIsAsked) {
  for (int asked_rank = 0; asked_rank < GetParam(); ++asked_rank) {
    std::vector<std::int64_t> asked(static_cast<std::size_t>(GetParam()), kNever);
    asked[static_cast<std::size_t>(asked_rank)] = 3 + asked_rank;
    const auto outcome = train_ranks(asked);
    EXPECT_THAT(outcome.steps, Each(4 + asked_rank))
        << "one step after the vote; the rank asked to stop is " << asked_rank;
    EXPECT_THAT(outcome.stopped, Each(true));
  }
}

TEST_P(StopVotes, AllStopAfterTheSameStepHoweverLateVotesAreRead) {
  std::vector<std::int64_t> asked(static_cast<std::size_t>(GetParam()), kNever);
  asked.back() = 3;
  for (const std::int64_t delay : {2, 7}) {
    const auto outcome = train_ranks(asked, 20, delay);
    EXPECT_THAT(outcome.steps, Each(3 + delay));
    EXPECT_THAT(outcome.stopped, Each(true));
  }
}

TEST(StopVotes, AllLearnAfterTheSameStepThatOthersWait) {
  std::vector<std::int64_t> learnt(3);
  testing::run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    testing::FakeEngine fake(8);
    std::int64_t step = 0;
    fake.engine.on(Event::kUpdate, HookPhase::kFirst, [&](State& state) { step = state.step; });
    StopVote vote(
        world, [] { return false; }, [] { return false; }, 1, false, [&] { return world->rank() == 1 && step == 5; });
    vote.attach(fake.engine);
    fake.engine.on(Event::kUpdate, HookPhase::kLast, [&](State& state) {
      if (vote.awaited()) learnt[static_cast<std::size_t>(world->rank())] += state.step;
    });
    EXPECT_EQ(fake.train({.epochs = 1}).step, 8);
    EXPECT_FALSE(vote.stopped());
  });
  EXPECT_THAT(learnt, Each(6));
}

TEST_P(StopVotes, TheFirstToBeAskedDecidesForAll) {
  std::vector<std::int64_t> asked;
  for (int rank = 0; rank < GetParam(); ++rank) asked.push_back(12 - 2 * rank);
  EXPECT_THAT(train_ranks(asked).steps, Each(asked.back() + 1));
}

TEST_P(StopVotes, NoRankStopsIfNoneWasAsked) {
  const auto outcome = train_ranks(std::vector<std::int64_t>(static_cast<std::size_t>(GetParam()), kNever));
  EXPECT_THAT(outcome.steps, Each(20));
  EXPECT_THAT(outcome.stopped, Each(false));
}

TEST_P(StopVotes, ARunThatEndsBeforeItsVoteIsReadWasNotStopped) {
  const auto outcome = train_ranks(std::vector<std::int64_t>(static_cast<std::size_t>(GetParam()), 4), 4);
  EXPECT_THAT(outcome.steps, Each(4));
  EXPECT_THAT(outcome.stopped, Each(false));
}

TEST(StopVote, AsksOnceAStep) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    testing::FakeEngine fake(5);
    int asked = 0;
    StopVote vote(world, [&] { return ++asked, false; });
    vote.attach(fake.engine);
    fake.train({.epochs = 2});
    EXPECT_EQ(asked, 10);
  });
}

TEST(StopVote, SaysWhetherTheTimeLimitStoppedTheRun) {
  for (const bool asked : {false, true}) {
    testing::run_ranks("inproc", 2, [asked](const CommunicatorPtr& world) {
      testing::FakeEngine fake(9);
      const bool both = asked && world->rank() == 1;
      StopVote vote(world, [both] { return both; }, [] { return true; });
      vote.attach(fake.engine);
      EXPECT_EQ(fake.train({.epochs = 1}).step, 2);
      EXPECT_TRUE(vote.stopped());
      EXPECT_EQ(vote.time_up(), !asked) << "a request to stop takes precedence over the time limit";
    });
  }
}

// Ranks 0 and 1 communicate with each other in every step. Rank 2 casts its first vote only after they have done six
// steps.
TEST(DelayedVotes, DoNotHoldUpRanksThatCommunicateInAnotherGroup) {
  testing::run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const auto others = world->split(world->rank() < 2 ? 0 : 1, world->rank());
    const at::Tensor word = at::zeros({1});
    DelayedVote vote(world, 6);
    std::vector<std::int64_t> read;
    if (world->rank() == 2) world->recv(word, 0).wait();
    for (std::int64_t step = 0; step < 12; ++step) {
      if (step == 6 && world->rank() == 0) world->send(word, 2).wait();
      read.push_back(vote.read());
      vote.cast(10 * step + world->rank());
      others->all_reduce(word, Reduction::kSum).wait();
    }
    EXPECT_THAT(read, ElementsAre(0, 0, 0, 0, 0, 0, 2, 12, 22, 32, 42, 52)) << "rank " << world->rank();
  });
}

// A step of a pipeline does not end on all ranks at the same time.
TEST(DelayedVotes, AreReadOneStepLaterIfRanksAreOnDifferentSteps) {
  testing::run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    DelayedVote vote(world, 1, true);
    for (std::int64_t step = 0; step < 5; ++step) {
      EXPECT_EQ(vote.read(), step == 0 ? 0 : 10 * (step - 1) + 2);
      vote.cast(10 * step + world->rank());
    }
  });
}

}  // namespace
}  // namespace phalanx
