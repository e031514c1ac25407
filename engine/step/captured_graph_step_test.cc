// SPDX-License-Identifier: Apache-2.0
#include "engine/step/captured_graph_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/testing/fakes.h"
#include "engine/testing/optimizer.h"
#include "framework/base/error.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const at::Device kDevice(c10::kCUDA, 0);  // fake

// Adds the input to a gradient. The loss is the sum of the gradient.
class Adding final : public Step {
 public:
  Result run(const Batch& batch, const Watch& watch) override {
    ++runs;
    gradient.add_(batch.inputs.at(0));
    if (waits) (void)at::nonzero(gradient);
    Result result{.outputs = {batch.inputs[0] * 2}, .loss = gradient.sum(), .weight = batch.weight()};
    watch(Stage::kForward, result);
    return result;
  }
  Result evaluate(const Batch&, const Watch&) override { return {}; }

  at::Tensor gradient = at::zeros({2}, at::device(kDevice));
  int runs = 0;
  bool waits = false;
};

Batch batch_of(double value, std::int64_t valid = 2) {
  return {.inputs = {at::full({2}, value, at::device(kDevice))}, .valid = valid, .global_rows = 2};
}

// Graphs are not recorded on the default stream.
c10::Stream stream_of_pool() { return c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(kDevice); }

class CapturedGraphSteps : public ::testing::Test {
 protected:
  double run(const Batch& batch) {
    return step_.run(batch, [](Stage, const Step::Result&) {}).loss.item<double>();
  }

  const c10::StreamGuard stream_{stream_of_pool()};
  Adding inner_;
  CapturedGraphStep step_{inner_, kDevice, 2};
};

TEST_F(CapturedGraphSteps, ReplayARecordingWithOtherValues) {
  std::vector<double> losses;
  for (const double value : {1, 2, 3, 4, 5}) losses.push_back(run(batch_of(value)));
  EXPECT_THAT(losses, ElementsAre(2, 6, 12, 20, 30));
  EXPECT_EQ(inner_.runs, 3) << "two to warm up, one that is recorded";
  EXPECT_EQ(step_.replays(), 3);
}

TEST_F(CapturedGraphSteps, ReportAllStagesAndKeepTheLossOfEachStep) {
  std::vector<Stage> stages;
  Step::Result third;
  for (const double value : {1, 2, 3, 4}) {
    stages.clear();
    const auto result = step_.run(batch_of(value), [&](Stage stage, const Step::Result&) { stages.push_back(stage); });
    if (value == 3) third = result;
  }
  EXPECT_THAT(stages,
              ElementsAre(Stage::kForward, Stage::kForwardCriterion, Stage::kBackwardCriterion, Stage::kBackward));
  EXPECT_EQ(third.loss.item<double>(), 12);
}

TEST_F(CapturedGraphSteps, ComputeOtherBatchesWithoutReplaying) {
  for (int i = 0; i < 3; ++i) run(batch_of(1));
  EXPECT_EQ(run(batch_of(1, /*valid=*/1)), 8);
  EXPECT_EQ(run(batch_of(1)), 10);
  EXPECT_EQ(step_.replays(), 2);
  EXPECT_EQ(inner_.runs, 4);
}

TEST_F(CapturedGraphSteps, RecordAgainWhenBatchesChangeForGood) {
  for (int i = 0; i < 3; ++i) run(batch_of(1));
  for (int i = 0; i < 3; ++i) run(batch_of(1, /*valid=*/1));
  EXPECT_EQ(inner_.runs, 6);
  EXPECT_EQ(run(batch_of(1, /*valid=*/1)), 14);
  EXPECT_EQ(inner_.runs, 6);
}

TEST_F(CapturedGraphSteps, RefuseAStepThatWaitsForTheDevice) {
  inner_.waits = true;
  for (int i = 0; i < 2; ++i) run(batch_of(1));
  EXPECT_THAT([&] { run(batch_of(1)); },
              ThrowsMessage<ConfigError>(HasSubstr("does something that a graph cannot record")));
}

// Trains two values, with graphs of the whole step or without graphs.
class Training {
 public:
  Training(const std::string& optimizer, bool graphs, bool required = false, CommunicatorPtr control = nullptr)
      : optimizer_(testing::make_optimizer(optimizer)) {
    optimizer_->attach({{values_, inner_.gradient}});
    if (!graphs) return;
    captured_ = std::make_unique<CapturedGraphStep>(
        inner_, kDevice, 2,
        std::make_shared<RecordedUpdate>(strategy_, *optimizer_, clock_, std::move(control), required));
  }

  // Does a step as the engine does it. Returns true if the step has done the update.
  bool train(const Batch& batch, double rate) {
    optimizer_->set_learning_rate(rate);
    Step& step = captured_ ? static_cast<Step&>(*captured_) : inner_;
    const auto result = step.run(batch, [](Stage, const Step::Result&) {});
    losses_.push_back(result.loss);
    if (result.updated) return true;
    strategy_.before_update(0);
    optimizer_->update();
    return false;
  }

  at::Tensor values() const { return values_.to(at::kCPU); }
  std::vector<double> losses() const {
    std::vector<double> all;
    for (const auto& loss : losses_) all.push_back(loss.item<double>());
    return all;
  }
  const testing::Calls& calls() const { return calls_; }
  std::int64_t updates() const { return optimizer_->updates(); }

 private:
  Adding inner_;
  at::Tensor values_ = at::ones({2}, at::device(kDevice));
  std::unique_ptr<Optimizer> optimizer_;
  testing::Calls calls_;
  testing::FakeStrategy strategy_{&calls_};
  StepClock clock_;
  std::vector<at::Tensor> losses_;
  std::unique_ptr<CapturedGraphStep> captured_;
};

class WholeSteps : public ::testing::Test {
 protected:
  const c10::StreamGuard stream_{stream_of_pool()};
};

// The seventh batch is of another kind.
TEST_F(WholeSteps, ComputeTheSameBitsAsLaunchedOnes) {
  Training launched("{name: adamw, lr: 0.1}", false), recorded("{name: adamw, lr: 0.1}", true);
  for (int step = 0; step < 9; ++step) {
    const Batch batch = batch_of(step - 3.3, /*valid=*/step == 6 ? 1 : 2);
    const double rate = 0.1 / (3 + step);
    EXPECT_FALSE(launched.train(batch, rate));
    EXPECT_EQ(recorded.train(batch, rate), step >= 2 && step != 6) << step;
    ASSERT_TRUE(at::equal(recorded.values(), launched.values())) << step;
    EXPECT_EQ(recorded.updates(), step + 1);
  }
  EXPECT_EQ(recorded.losses(), launched.losses());
}

TEST_F(WholeSteps, ContainWhatTheStrategyDoesAndDoNotRepeatItOnTheHost) {
  Training recorded("sgd", true);
  for (int step = 0; step < 6; ++step) recorded.train(batch_of(1), 0.1);
  EXPECT_THAT(recorded.calls(), ElementsAre("before_update 0", "before_update 0", "before_update 0"))
      << "two to warm up, one that is recorded";
}

// Besides the graph: the batch, the number of the update, the loss, and the learning rate if it has changed.
TEST_F(WholeSteps, AreLaunchedAtOnce) {
  auto& streams = testing::Streams::global();
  Training recorded("{name: adamw, lr: 0.1}", true);
  const Batch batch = batch_of(1);
  std::vector<std::int64_t> launches;
  for (int step = 0; step < 6; ++step) {
    const auto before = streams.launches();
    recorded.train(batch, step == 5 ? 0.2 : 0.1);
    launches.push_back(streams.launches() - before);
  }
  EXPECT_EQ(launches[3], 4);
  EXPECT_EQ(launches[4], 4);
  EXPECT_EQ(launches[5], 5);
  EXPECT_GT(launches[0], launches[5]);
}

TEST_F(WholeSteps, AreNotRecordedForPadding) {
  Training recorded("sgd", true);
  for (int step = 0; step < 6; ++step) EXPECT_FALSE(recorded.train(batch_of(1, /*valid=*/0), 0.1)) << step;
}

TEST_F(WholeSteps, EndWithBackwardIfTheOptimizerNeedsTheHost) {
  Training launched("lion", false), recorded("lion", true);
  for (int step = 0; step < 5; ++step) {
    launched.train(batch_of(step), 0.1);
    EXPECT_FALSE(recorded.train(batch_of(step), 0.1));
  }
  EXPECT_TRUE(at::equal(recorded.values(), launched.values()));
  EXPECT_EQ(recorded.calls().size(), 5u);
}

TEST_F(WholeSteps, AreRefusedIfBackwardCommunicatesAndTheOptimizerNeedsTheHost) {
  Training recorded("lion", true, /*required=*/true);
  for (int step = 0; step < 2; ++step) recorded.train(batch_of(1), 0.1);
  EXPECT_THAT([&] { recorded.train(batch_of(1), 0.1); },
              ThrowsMessage<ConfigError>(HasSubstr("takes the learning rate from the host; use strategy: all_reduce")));
}

// The other rank has no device. It agrees to record the fifth step, and to replay the next one.
TEST(WholeStepsOfTwoRanks, DoWhatAllOfThemCanDo) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    if (world->rank() == 1) {
      testing::FakeStrategy strategy;
      const auto optimizer = testing::make_optimizer("sgd");
      StepClock clock;
      RecordedUpdate other(strategy, *optimizer, clock, world, false);
      for (int step = 0; step < 8; ++step) other.agree(step == 5, step == 4 || step == 5);
      return;
    }
    const c10::StreamGuard stream(stream_of_pool());
    Training recorded("sgd", true, false, world);
    for (int step = 0; step < 8; ++step) {
      EXPECT_EQ(recorded.train(batch_of(1), 0.1), step == 4 || step == 5) << step;
    }
  });
}

// Uses the parameter b only if all rows count. The parameters are on the CPU, so that their hooks run as in backward.
class Branching final : public Step {
 public:
  Result run(const Batch& batch, const Watch&) override {
    (batch.valid == batch.global_rows ? a + b : a).sum().backward();
    return {.outputs = {}, .loss = batch.inputs[0].sum(), .weight = batch.weight()};
  }
  Result evaluate(const Batch&, const Watch&) override { return {}; }

  at::Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_();
};

TEST(UnusedParametersOfReplays, AreTheOnesOfTheRecordedStep) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const c10::StreamGuard stream(stream_of_pool());
    Branching inner;
    const FlatParameters parameters(NamedTensors{{"a", inner.a}, {"b", inner.b}}, *world, 1);
    UnusedParameters unused({{world, world, parameters}}, [](const std::string&) { return false; });
    CapturedGraphStep step(inner, kDevice, 2, nullptr, &unused);
    const auto unused_in = [&](std::int64_t valid) {
      step.run(batch_of(1, valid), [](Stage, const Step::Result&) {});
      unused.agree({world});
      return unused.names();
    };
    for (int i = 0; i < 3; ++i) EXPECT_THAT(unused_in(2), IsEmpty()) << i;
    EXPECT_THAT(unused_in(1), ElementsAre("b"));
    EXPECT_THAT(unused_in(2), IsEmpty());
    EXPECT_EQ(step.replays(), 2);
  });
}

// Has a large tensor while it runs.
class Using final : public Step {
 public:
  static constexpr std::int64_t kBytes = 8 << 20;

  Result run(const Batch& batch, const Watch&) override {
    const at::Tensor activations = at::full({kBytes}, 1, at::device(kDevice).dtype(at::kByte));
    return {.outputs = {}, .loss = activations.sum() + batch.inputs[0].sum(), .weight = batch.weight()};
  }
  Result evaluate(const Batch&, const Watch&) override { return {}; }
};

TEST(CapturedGraphStepMemory, OfTheWarmUpAndOfAnOldGraphIsReleasedBeforeRecording) {
  const c10::StreamGuard stream(stream_of_pool());
  Using inner;
  CapturedGraphStep step(inner, kDevice, 2);
  const auto reserved = [] { return testing::fake_memory().getDeviceStats(kDevice.index()).reserved_bytes[0]; };
  testing::fake_memory().emptyCache();
  const std::int64_t before = reserved().current;
  testing::fake_memory().resetPeakStats(kDevice.index());
  for (int i = 0; i < 4; ++i) step.run(batch_of(1), [](Stage, const Step::Result&) {});
  EXPECT_EQ(step.replays(), 2);
  for (int i = 0; i < 4; ++i) step.run(batch_of(1, /*valid=*/1), [](Stage, const Step::Result&) {});
  EXPECT_EQ(step.replays(), 4);
  EXPECT_LT(reserved().current - before, Using::kBytes * 3 / 2);
  EXPECT_LT(reserved().peak - before, Using::kBytes * 5 / 2) << "the old graph, and a step that warms up beside it";
}

TEST(CapturedGraphStepWithoutGraphs, IsRefused) {
  Adding inner;
  EXPECT_THAT([&] { CapturedGraphStep(inner, at::kCPU); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot record graphs")));
}

}  // namespace
}  // namespace phalanx
