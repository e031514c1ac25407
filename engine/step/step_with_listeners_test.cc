// SPDX-License-Identifier: Apache-2.0
#include "engine/step/step_with_listeners.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/step/after_backward.h"
#include "engine/step/alternating_turns.h"
#include "engine/step/batch_norm_rows.h"
#include "engine/step/current_step.h"
#include "engine/step/padding_only_guard.h"
#include "engine/step/shared_random_guard.h"
#include "engine/step/step_flop_counter.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Calls = std::vector<std::string>;

// Calls functions of the test in place of forward and backward.
class ScriptedStep final : public Step {
 public:
  Result run(const Batch& batch, const Watch& watch) override {
    computes(batch);
    for (const auto stage : {Stage::kForward, Stage::kForwardCriterion, Stage::kBackwardCriterion, Stage::kBackward}) {
      watch(stage, {});
    }
    ends();
    return {.weight = 7};
  }
  Result evaluate(const Batch& batch, const Watch& watch) override {
    computes(batch);
    watch(Stage::kForward, {});
    return {.weight = 8};
  }

  std::function<void(const Batch&)> computes = [](const Batch&) {};
  std::function<void()> ends = [] {};
};

class RecordingListener final : public StepListener {
 public:
  RecordingListener(std::string name, Calls& calls) : name_(std::move(name)), calls_(calls) {}

  void before_step(const Batch&) override { note("before step"); }
  void after_backward() override { note("after backward"); }
  void after_step() override { note("after step"); }
  void before_evaluation() override { note("before evaluation"); }

 private:
  void note(const std::string& what) { calls_.push_back(name_ + " " + what); }

  std::string name_;
  Calls& calls_;
};

class Listeners : public ::testing::Test {
 protected:
  StepWithListeners::Listeners recorders() {
    return {std::make_shared<RecordingListener>("outer", calls_), std::make_shared<RecordingListener>("inner", calls_)};
  }

  // Runs a step with this listener alone.
  Step::Result run(const std::shared_ptr<StepListener>& listener, const Batch& batch = {.valid = 4, .global_rows = 8}) {
    return StepWithListeners(step_, {listener}).run(batch, nothing_);
  }

  const Step::Watch nothing_ = [](Stage, const Step::Result&) {};
  const Step::Watch record_backward_ = [this](Stage stage, const Step::Result&) {
    if (stage == Stage::kBackward) calls_.emplace_back("watcher");
  };
  Calls calls_;
  ScriptedStep step_;
};

TEST_F(Listeners, NestAroundAStepAndAreCalledBeforeWatchersOfBackward) {
  step_.computes = [this](const Batch&) { calls_.emplace_back("computes"); };
  step_.ends = [this] { calls_.emplace_back("ends"); };
  const auto result = StepWithListeners(step_, recorders()).run({}, record_backward_);
  EXPECT_EQ(result.weight, 7);
  EXPECT_THAT(calls_, ElementsAre("outer before step", "inner before step", "computes", "inner after backward",
                                  "outer after backward", "watcher", "ends", "inner after step", "outer after step"));
}

TEST_F(Listeners, LearnOfAnEvaluationOnlyBeforeIt) {
  step_.computes = [this](const Batch&) { calls_.emplace_back("computes"); };
  EXPECT_EQ(StepWithListeners(step_, recorders()).evaluate({}, record_backward_).weight, 8);
  EXPECT_THAT(calls_, ElementsAre("outer before evaluation", "inner before evaluation", "computes"));
}

TEST_F(Listeners, AreNotCalledAfterAStepThatThrows) {
  step_.computes = [](const Batch&) { throw std::runtime_error("in forward"); };
  StepWithListeners step(step_, recorders());
  EXPECT_THROW(step.run({}, nothing_), std::runtime_error);
  EXPECT_THAT(calls_, ElementsAre("outer before step", "inner before step"));
}

TEST_F(Listeners, AreCalledForEachPartOrOncePerBatch) {
  StepWithListeners part(step_, {std::make_shared<RecordingListener>("part", calls_)});
  class Twice final : public Step {
   public:
    explicit Twice(Step& inner) : inner_(inner) {}
    Result run(const Batch& batch, const Watch& watch) override {
      const Watch ignore_stages = [](Stage, const Result&) {};
      inner_.run(batch, ignore_stages);
      Result result = inner_.run(batch, ignore_stages);
      watch(Stage::kBackward, result);
      return result;
    }
    Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

   private:
    Step& inner_;
  } twice(part);
  StepWithListeners(twice, {std::make_shared<RecordingListener>("batch", calls_)}).run({}, nothing_);
  EXPECT_THAT(calls_, ElementsAre("batch before step", "part before step", "part after backward", "part after step",
                                  "part before step", "part after backward", "part after step", "batch after backward",
                                  "batch after step"));
}

TEST_F(Listeners, CurrentStepGivesEachStepItsNumberAndSeed) {
  const auto current = std::make_shared<CurrentStep>(5);
  std::vector<std::int64_t> numbers;
  std::vector<std::uint64_t> seeds;
  step_.computes = [&](const Batch&) {
    numbers.push_back(current->number());
    seeds.push_back(current->seed());
  };
  run(current);
  run(current);
  current->start_at(20);
  run(current);
  StepWithListeners(step_, {current}).evaluate({}, nothing_);
  EXPECT_THAT(numbers, ElementsAre(0, 1, 20, 20)) << "an evaluation is not a step";
  EXPECT_THAT(seeds, ElementsAre(mix(5, 0), mix(5, 1), mix(5, 20), mix(5, 20)));
  EXPECT_FALSE(current->seed_on_device().defined());
}

TEST_F(Listeners, CurrentStepWritesTheSeedIntoTheSameTensorOfADevice) {
  const auto current = std::make_shared<CurrentStep>(5);
  current->keep_seed_on(at::kCPU);
  const at::Tensor seed = current->seed_on_device();
  for (int i = 0; i < 2; ++i) {
    run(current);
    EXPECT_EQ(static_cast<std::uint64_t>(seed.item<std::int64_t>()), mix(5, static_cast<std::uint64_t>(i)));
  }
}

TEST_F(Listeners, StepFlopCounterCountsTheFirstStepOnly) {
  const auto counter = std::make_shared<StepFlopCounter>();
  EXPECT_EQ(counter->operations(), 0);
  step_.computes = [](const Batch&) { at::mm(at::ones({2, 3}), at::ones({3, 4})); };
  run(counter);
  EXPECT_EQ(counter->operations(), 2 * 2 * 3 * 4);
  EXPECT_EQ(counter->samples(), 8);
  run(counter, {.valid = 1, .global_rows = 2});
  EXPECT_EQ(counter->operations(), 2 * 2 * 3 * 4);
  EXPECT_EQ(counter->samples(), 8);
}

// A task that knows only its turn.
class TurnTask final : public Task {
 public:
  const ModelSpec& model() const override { return model_; }
  at::Tensor mean_loss(const Tensors&, const Batch&) const override { return at::zeros({}); }
  std::vector<MeterConfig> meters() const override { return {}; }
  Goal goal() const override { return {}; }
  void take_turn(std::size_t turn) override { turns.push_back(turn); }

  std::vector<std::size_t> turns;

 private:
  ModelSpec model_;
};

TEST_F(Listeners, AlternatingTurnsTrainTheParametersOfOneTurnInEachStep) {
  TurnTask task;
  const auto current = std::make_shared<CurrentStep>(0);
  at::Tensor first = at::zeros({1}).requires_grad_(), second = at::zeros({1}).requires_grad_();
  std::size_t turn = 9;
  Calls trained;
  step_.computes = [&](const Batch&) {
    trained.push_back(std::to_string(turn) + (first.requires_grad() ? " first" : "") +
                      (second.requires_grad() ? " second" : ""));
  };
  const std::vector<std::vector<at::Tensor>> parameters{{first}, {second}};
  StepWithListeners step(step_, {current, std::make_shared<AlternatingTurns>(task, parameters, current, turn)});
  current->start_at(3);
  for (int i = 0; i < 3; ++i) step.run({}, nothing_);
  EXPECT_THAT(trained, ElementsAre("1 second", "0 first", "1 second"));
  step.evaluate({}, nothing_);
  EXPECT_THAT(task.turns, ElementsAre(1, 0, 1, 0)) << "an evaluation is turn 0";
  EXPECT_EQ(turn, 1) << "the optimizer's turn";
}

TEST_F(Listeners, SharedRandomGuardRefusesAModelThatDrawsFromTheGeneratorInTheFirstStep) {
  step_.computes = [](const Batch&) { at::empty({1}).uniform_(); };
  const auto guard = std::make_shared<SharedRandomGuard>();
  EXPECT_THAT([&] { run(guard); }, ThrowsMessage<ConfigError>(HasSubstr("threads of one process share it")));
}

TEST_F(Listeners, SharedRandomGuardLooksOnlyAtTheFirstStep) {
  const auto guard = std::make_shared<SharedRandomGuard>();
  run(guard);
  step_.computes = [](const Batch&) { at::empty({1}).uniform_(); };
  EXPECT_NO_THROW(run(guard));
}

TEST_F(Listeners, PaddingOnlyGuardRestoresBuffersAfterAShareWithoutSamples) {
  const at::Tensor buffer = at::zeros({2});
  const auto guard = std::make_shared<PaddingOnlyGuard>(std::vector<at::Tensor>{buffer});
  step_.computes = [&](const Batch&) {
    const at::NoGradGuard no_grad;
    buffer.add_(1);
  };
  run(guard, {.valid = 0, .global_rows = 1});
  EXPECT_EQ(buffer.sum().item<double>(), 0);
  run(guard, {.valid = 1, .global_rows = 1});
  EXPECT_EQ(buffer.sum().item<double>(), 2);
}

TEST_F(Listeners, BatchNormRowsAreTheSamplesOfTheBatch) {
  const auto statistics = std::make_shared<BatchStatistics>();
  std::int64_t seen = 0;
  step_.computes = [&](const Batch&) { seen = statistics->valid; };
  run(std::make_shared<BatchNormRows>(statistics), {.valid = 3, .global_rows = 9});
  EXPECT_EQ(seen, 3);
}

TEST_F(Listeners, AfterBackwardCallsItsFunctionBeforeWatchersAndNotInEvaluations) {
  StepWithListeners step(step_, {std::make_shared<AfterBackward>([this] { calls_.emplace_back("function"); })});
  step.evaluate({}, record_backward_);
  EXPECT_THAT(calls_, ElementsAre());
  step.run({}, record_backward_);
  EXPECT_THAT(calls_, ElementsAre("function", "watcher"));
}

}  // namespace
}  // namespace phalanx
