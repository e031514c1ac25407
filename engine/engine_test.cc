// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/evaluator.h"
#include "engine/testing/fakes.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using testing::Calls;
using ::testing::ElementsAre;
using testing::FakeEngine;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<std::string> kTenHooks{
    "on_start",    "on_start_epoch", "on_sample",    "on_forward", "on_forward_criterion", "on_backward_criterion",
    "on_backward", "on_update",      "on_end_epoch", "on_end"};

void write_down_hooks(Engine& engine, Calls& calls) {
  for (const auto& name : kTenHooks) engine.on(name, [&calls, name](State&) { calls.push_back(name); });
}

Calls concatenated(const std::vector<Calls>& parts) {
  Calls all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Engine, HooksFireInTheOrderOfEvents) {
  FakeEngine fake(2);
  Calls hooks;
  write_down_hooks(fake.engine, hooks);
  fake.train({.epochs = 2});
  const Calls step{"on_sample",   "on_forward", "on_forward_criterion", "on_backward_criterion",
                   "on_backward", "on_update"};
  const Calls epoch = concatenated({{"on_start_epoch"}, step, step, {"on_end_epoch"}});
  EXPECT_EQ(hooks, concatenated({{"on_start"}, epoch, epoch, {"on_end"}}));
}

TEST(Engine, HooksFireBetweenTheCallsOfTraining) {
  FakeEngine fake(1);
  write_down_hooks(fake.engine, fake.calls);
  fake.train({.epochs = 1});
  EXPECT_THAT(fake.calls, ElementsAre("attach", "on_start", "epoch 0", "on_start_epoch", "on_sample", "on_forward",
                                      "on_forward_criterion", "on_backward_criterion", "on_backward", "before_update 0",
                                      "update", "after_update 0", "on_update", "on_end_epoch", "finish", "on_end"));
}

TEST(Engine, LeavesTheUpdateToAStepThatHasDoneIt) {
  FakeEngine fake(1);
  fake.step.updates = true;
  fake.train({.epochs = 1});
  EXPECT_THAT(fake.calls, ElementsAre("attach", "epoch 0", "after_update 0", "finish"));
}

constexpr int kPhaseCount = static_cast<int>(HookPhase::kLast) + 1;

TEST(Engine, HooksOfOneEventFireByPhaseWhateverTheOrderOfRegistration) {
  FakeEngine fake(1);
  Calls calls, expected;
  for (int phase = kPhaseCount - 1; phase >= 0; --phase) {
    for (const char* which : {" first", " second"}) {
      fake.engine.on(Event::kUpdate, static_cast<HookPhase>(phase),
                     [&calls, name = std::to_string(phase) + which](State&) { calls.push_back(name); });
    }
  }
  fake.train({.epochs = 1});
  for (int phase = 0; phase < kPhaseCount; ++phase) {
    for (const char* which : {" first", " second"}) expected.push_back(std::to_string(phase) + which);
  }
  EXPECT_EQ(calls, expected);
}

TEST(Engine, HooksWithoutAPhaseFireAfterAllPhasesButTheLast) {
  FakeEngine fake(1);
  Calls calls;
  fake.engine.on(Event::kUpdate, HookPhase::kLast, [&](State&) { calls.push_back("last"); });
  fake.engine.on(Event::kUpdate, [&](State&) { calls.push_back("user"); });
  fake.engine.on("on_update", [&](State&) { calls.push_back("user by name"); });
  fake.engine.on(Event::kUpdate, HookPhase::kAfterCheckpoint, [&](State&) { calls.push_back("after checkpoint"); });
  fake.train({.epochs = 1});
  EXPECT_THAT(calls, ElementsAre("after checkpoint", "user", "user by name", "last"));
}

TEST(Engine, APhaseOrdersOnlyTheHooksOfOneEvent) {
  FakeEngine fake(1);
  Calls calls;
  fake.engine.on(Event::kSample, HookPhase::kLast, [&](State&) { calls.push_back("last of on_sample"); });
  fake.engine.on(Event::kUpdate, HookPhase::kFirst, [&](State&) { calls.push_back("first of on_update"); });
  fake.train({.epochs = 1});
  EXPECT_THAT(calls, ElementsAre("last of on_sample", "first of on_update"));
}

TEST(Evaluator, HooksFireByPhase) {
  FakeEngine fake(1);
  Evaluator evaluator(fake.step);
  Calls calls;
  evaluator.on(Event::kForward, [&](State&) { calls.push_back("user"); });
  evaluator.on(Event::kForward, HookPhase::kMeasure, [&](State&) { calls.push_back("measure"); });
  evaluator.run(fake.loader, {});
  EXPECT_THAT(calls, ElementsAre("measure", "user"));
}

TEST(Engine, HooksOfOnePhaseFireInTheOrderOfRegistration) {
  FakeEngine fake(1);
  Calls calls;
  fake.engine.on(Event::kUpdate, [&](State&) { calls.push_back("first"); });
  fake.engine.on("on_update", [&](State&) { calls.push_back("second"); });
  fake.train({.epochs = 1});
  EXPECT_THAT(calls, ElementsAre("first", "second"));
}

TEST(Engine, AnUnknownHookIsAnErrorWithTheNearestName) {
  FakeEngine fake(1);
  EXPECT_THAT([&] { fake.engine.on("on_forwrad", [](State&) {}); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr(R"(unknown hook "on_forwrad" (did you mean "on_forward"?); hooks are )"),
                        HasSubstr("on_start, on_start_epoch, on_sample, on_forward, "))));
  EXPECT_THAT([&] { fake.engine.on("zzz", [](State&) {}); },
              ThrowsMessage<ConfigError>(HasSubstr(R"(unknown hook "zzz"; hooks are on_start, )")));
}

TEST(Engine, EveryEventHasAHookName) {
  for (int i = 0; i < kEvents; ++i) {
    EXPECT_EQ(to_string(static_cast<Event>(i)), kTenHooks[i]);
    EXPECT_EQ(event_from_name(kTenHooks[i]), static_cast<Event>(i));
  }
}

TEST(Engine, HooksSeeEpochStepBatchAndResult) {
  FakeEngine fake(2);
  Calls seen;
  const auto see = [&](const char* name) {
    return [&seen, name](State& state) {
      seen.push_back(std::string(name) + " epoch " + std::to_string(state.epoch) + " step " +
                     std::to_string(state.step) + " rows " + std::to_string(state.batch.valid));
    };
  };
  fake.engine.on(Event::kSample, see("sample"));
  fake.engine.on(Event::kUpdate, see("update"));
  fake.engine.on(Event::kForward, [&](State& state) { EXPECT_TRUE(state.result.outputs[0].defined()); });
  fake.engine.on(Event::kForwardCriterion, [&](State& state) {
    EXPECT_EQ(state.result.loss.item<std::int64_t>(), state.batch.valid) << "the result of this batch";
  });
  fake.train({.epochs = 2});
  EXPECT_THAT(
      seen, ElementsAre("sample epoch 0 step 0 rows 1", "update epoch 0 step 1 rows 1", "sample epoch 0 step 1 rows 2",
                        "update epoch 0 step 2 rows 2", "sample epoch 1 step 2 rows 1", "update epoch 1 step 3 rows 1",
                        "sample epoch 1 step 3 rows 2", "update epoch 1 step 4 rows 2"));
}

TEST(Engine, ReturnsWhereItEnded) {
  FakeEngine fake(3);
  const State end = fake.train({.epochs = 2});
  EXPECT_EQ(end.step, 6);
  EXPECT_EQ(end.epoch, 2) << "the epoch that would be next";
  EXPECT_FALSE(end.stop);
}

TEST(Engine, ContinuesFromTheGivenState) {
  FakeEngine fake(1);
  const State end = fake.train({.epoch = 2, .epochs = 3, .step = 20});
  EXPECT_THAT(fake.calls, ElementsAre("attach", "epoch 2", "before_update 20", "update", "after_update 20", "finish"));
  EXPECT_EQ(end.step, 21);
}

TEST(Engine, WithoutEpochsOnlyStartsAndEnds) {
  FakeEngine fake(1);
  write_down_hooks(fake.engine, fake.calls);
  fake.train({.epochs = 0});
  EXPECT_THAT(fake.calls, ElementsAre("attach", "on_start", "finish", "on_end"));
}

class StopFrom : public ::testing::TestWithParam<Event> {};

TEST_P(StopFrom, EndsAfterTheStep) {
  FakeEngine fake(3);
  fake.engine.on(GetParam(), [](State& state) { state.stop = state.step >= 1; });
  Calls hooks;
  fake.engine.on(Event::kEndEpoch, [&](State&) { hooks.push_back("on_end_epoch"); });
  fake.engine.on(Event::kEnd, [&](State&) { hooks.push_back("on_end"); });
  const State end = fake.train({.epochs = 5});
  EXPECT_TRUE(end.stop);
  const std::int64_t steps = GetParam() == Event::kUpdate ? 1 : 2;  // a step that has begun is finished
  EXPECT_EQ(end.step, steps);
  EXPECT_EQ(std::ranges::count(fake.calls, "update"), steps);
  EXPECT_THAT(hooks, ElementsAre("on_end_epoch", "on_end"));
  EXPECT_EQ(fake.calls.back(), "finish");
}

INSTANTIATE_TEST_SUITE_P(Hooks, StopFrom,
                         ::testing::Values(Event::kSample, Event::kForward, Event::kForwardCriterion,
                                           Event::kBackwardCriterion, Event::kBackward, Event::kUpdate),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Evaluator, AnEvaluationFiresItsSubsetOfEventsAndUpdatesNothing) {
  FakeEngine fake(2);
  write_down_hooks(fake.engine, fake.calls);
  Evaluator evaluator(fake.step);
  Calls tested;
  for (const auto& name : kTenHooks) {
    evaluator.on(event_from_name(name), [&tested, name](State& state) {
      EXPECT_FALSE(state.training);
      tested.push_back(name);
    });
  }
  evaluator.run(fake.loader, {});
  EXPECT_THAT(tested, ElementsAre("on_start", "on_sample", "on_forward", "on_forward_criterion", "on_sample",
                                  "on_forward", "on_forward_criterion", "on_end"));
  EXPECT_THAT(fake.calls, ElementsAre("epoch 0")) << "no hook of training, no update, nothing synchronized";
}

TEST(Engine, ATestInTheMiddleDoesNotDisturbTraining) {
  FakeEngine fake(2);
  testing::FakeLoader test_loader(5);
  std::int64_t tested = 0;
  Evaluator evaluator(fake.step);
  evaluator.on(Event::kForwardCriterion, [&](State&) { ++tested; });
  fake.engine.on(Event::kUpdate, [&](State& state) {
    evaluator.run(test_loader, {.epoch = state.epoch, .step = state.step});
    EXPECT_TRUE(state.training);
    EXPECT_EQ(state.result.loss.item<std::int64_t>(), state.batch.valid) << "still the result of the training batch";
  });
  const State end = fake.train({.epochs = 2});
  EXPECT_EQ(end.step, 4);
  EXPECT_EQ(tested, 4 * 5);
}

TEST(Engine, AnErrorInAHookEndsTrainingAtOnce) {
  FakeEngine fake(2);
  fake.engine.on(Event::kBackward, [](State&) { throw DataError("disk full"); });
  EXPECT_THROW(fake.train({.epochs = 1}), DataError);
  EXPECT_THAT(fake.calls, ElementsAre("attach", "epoch 0"));
}

}  // namespace
}  // namespace phalanx
