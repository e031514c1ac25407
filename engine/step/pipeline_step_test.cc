// SPDX-License-Identifier: Apache-2.0
#include "engine/step/pipeline_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/step/plain_step.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using pipeline::Action;
using pipeline::Schedule;
using testing::run_ranks;
using Kind = Action::Kind;

constexpr int kBlocks = 4;
constexpr std::int64_t kWidth = 3, kRows = 7;

// Values that are the same on all ranks.
at::Tensor values(at::IntArrayRef shape, double of) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  return ((at::arange(count, at::kFloat) * of).sin()).view(shape);
}

// Four layers, each of them a block. The last one uses the weight of the first.
class Layers final : public Model, public BlockChain {
 public:
  Layers() {
    for (int i = 0; i < kBlocks; ++i) {
      if (i + 1 < kBlocks) weights_.push_back(values({kWidth, kWidth}, 1.3 + i).requires_grad_());
      const at::Tensor weight = weights_[static_cast<std::size_t>(i % (kBlocks - 1))];
      blocks_.push_back({.name = "layer" + std::to_string(i),
                         .forward =
                             [this, weight, i](const at::Tensor& x) {
                               if (i == 0) before_first_layer();
                               return at::tanh(at::linear(x, weight));
                             },
                         .parameters = {"weight" + std::to_string(i % (kBlocks - 1))},
                         .buffers = {}});
    }
    for (auto& weight : weights_) weight.mutable_grad() = at::zeros_like(weight);
  }

  Tensors outputs(const Tensors& inputs) override {
    at::Tensor x = inputs.at(0);
    for (const auto& block : blocks_) x = block.forward(x);
    return {x};
  }
  void train(bool) override {}
  NamedTensors named_parameters() const override {
    NamedTensors named;
    for (std::size_t i = 0; i < weights_.size(); ++i) named.emplace_back("weight" + std::to_string(i), weights_[i]);
    return named;
  }
  NamedTensors named_buffers() const override { return {}; }
  const std::vector<Block>& blocks() const override { return blocks_; }
  void set_block_runner(BlockRunner) override {}
  void keep_blocks(const std::vector<std::size_t>&) override {}

  std::function<void()> before_first_layer = [] {};

 private:
  std::vector<at::Tensor> weights_;
  std::vector<Block> blocks_;
};

using RankOf = std::function<int(int stage, int micro_batch)>;

// All forwards followed by all backwards, for any placement of the stages.
Schedule schedule_of(int ranks, int stages, int micro_batches, const RankOf& rank_of, bool split) {
  Schedule schedule{.name = "of this test",
                    .ranks = ranks,
                    .stages = stages,
                    .micro_batches = micro_batches,
                    .actions = std::vector<std::vector<Action>>(static_cast<std::size_t>(ranks))};
  const auto add = [&](Kind kind, int stage, int micro_batch) {
    schedule.actions[static_cast<std::size_t>(rank_of(stage, micro_batch))].push_back({kind, stage, micro_batch});
  };
  for (int m = 0; m < micro_batches; ++m) {
    for (int s = 0; s < stages; ++s) add(Kind::kForward, s, m);
  }
  for (int m = 0; m < micro_batches; ++m) {
    for (int s = stages - 1; s >= 0; --s) add(split ? Kind::kInputGradient : Kind::kBackward, s, m);
  }
  if (!split) return schedule;
  for (int m = 0; m < micro_batches; ++m) {
    for (int s = stages - 1; s >= 0; --s) add(Kind::kWeightGradient, s, m);
  }
  return schedule;
}

struct Task3 {
  std::shared_ptr<const Loss> loss = Losses::Choice("cross_entropy").make();
  std::unique_ptr<Task> task = Tasks::Choice("classification").make(classification_samples({kWidth}, kWidth), loss);
};

Batch batch_of(std::int64_t rows, std::int64_t valid) {
  return {.inputs = {values({rows, kWidth}, 0.7)},
          .targets = {at::arange(rows, at::kLong) % kWidth},
          .valid = valid,
          .global_rows = valid};
}

PipelineStep::Setup setup_of(Layers& model, const Task& task, Schedule schedule, const CommunicatorPtr& world) {
  const RowSpec row{.shape = {kWidth}, .dtype = at::kFloat};
  std::vector<std::size_t> begins;
  for (int s = 0; s <= schedule.stages; ++s) begins.push_back(static_cast<std::size_t>(s * kBlocks / schedule.stages));
  return {.model = model,
          .task = task,
          .schedule = std::move(schedule),
          .begins = std::move(begins),
          .inputs = std::vector<RowSpec>(kBlocks, row),
          .predictions = {row},
          .pipe = world,
          .control = world};
}

void expect_same_results(const Step::Result& got, const Step::Result& expected) {
  EXPECT_TRUE(at::allclose(got.loss, expected.loss, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(got.outputs.at(0), expected.outputs.at(0), 1e-5, 1e-6));
  EXPECT_EQ(got.weight, expected.weight);
}

// Compares losses and outputs, in training on the rank with the last stage of the first micro-batch, and the sums of
// the ranks' gradients.
void expect_as_plain(const Schedule& schedule, const Batch& batch) {
  run_ranks("inproc", schedule.ranks, [&](const CommunicatorPtr& world) {
    const Task3 task;
    Layers model, whole;
    PipelineStep step(setup_of(model, *task.task, schedule, world));
    PlainStep plain(whole, *task.task, 1);
    const auto nothing = [](Stage, const Step::Result&) {};
    for (int again = 0; again < 2; ++again) {
      const auto got = step.run(batch, nothing), expected = plain.run(batch, nothing);
      EXPECT_EQ(got.elsewhere(), world->rank() != schedule.rank_of(schedule.stages - 1, 0));
      if (!got.elsewhere()) expect_same_results(got, expected);
      const auto gradients = model.parameters(), of_whole = whole.parameters();
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        at::Tensor sum = gradients[i].grad().clone();
        world->all_reduce(sum, Reduction::kSum).wait();
        EXPECT_TRUE(at::allclose(sum, of_whole[i].grad(), 1e-4, 1e-6)) << "weight" << i;
      }
    }
    expect_same_results(step.evaluate(batch, nothing), plain.evaluate(batch, nothing));
  });
}

int one_each(int stage, int) { return stage; }

TEST(PipelineStep, ComputesWhatTheWholeModelDoes) {
  for (const bool split : {false, true}) {
    expect_as_plain(schedule_of(2, 2, 3, one_each, split), batch_of(kRows, kRows));
    expect_as_plain(schedule_of(4, 4, 2, one_each, split), batch_of(kRows, kRows));
  }
}

TEST(PipelineStep, ARankMayHaveSeveralStages) {
  expect_as_plain(schedule_of(2, 4, 3, [](int stage, int) { return stage % 2; }, false), batch_of(kRows, kRows));
  expect_as_plain(
      schedule_of(2, 4, 3, [](int stage, int) { return stage < 2 ? stage : 3 - stage; }, true), batch_of(kRows, kRows));
}

TEST(PipelineStep, AStageMayBeOnTwoRanksDependingOnTheDirection) {
  const auto both_ways = [](int stage, int micro_batch) { return micro_batch % 2 == 0 ? stage : 3 - stage; };
  expect_as_plain(schedule_of(4, 4, 4, both_ways, true), batch_of(kRows, kRows));
}

TEST(PipelineStep, PaddingAndMicroBatchesWithoutRowsDoNotCount) {
  expect_as_plain(schedule_of(2, 2, 3, one_each, false), batch_of(kRows, kRows - 3));
  expect_as_plain(schedule_of(2, 2, 5, one_each, false), batch_of(3, 3));
}

TEST(PipelineStep, HoldsActivationsFromForwardToBackward) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto most = [&](const std::string& name) {
      const Task3 task;
      Layers model;
      PipelineStep step(setup_of(model, *task.task,
                                 pipeline::make_schedule(name, {.ranks = 2, .stages_per_rank = 1, .micro_batches = 6}),
                                 world));
      step.run(batch_of(kRows, kRows), [](Stage, const Step::Result&) {});
      return step.max_live();
    };
    EXPECT_EQ(most("gpipe"), 6u);
    EXPECT_EQ(most("1f1b"), world->rank() == 0 ? 2u : 1u);
  });
}

// In its second step, the first rank computes before the last one has started, because the last rank waits for it.
TEST(PipelineStep, ARankBeginsItsNextStepWithoutWaitingForLaterStages) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const Task3 task;
    Layers model;
    const auto nothing = [](Stage, const Step::Result&) {};
    const at::Tensor word = at::zeros({1});
    PipelineStep step(setup_of(model, *task.task, schedule_of(2, 2, 3, one_each, true), world));
    step.run(batch_of(kRows, kRows), nothing);
    bool sent = false;
    model.before_first_layer = [&] {
      if (!std::exchange(sent, true)) world->send(word, 1, kMaxTag).wait();
    };
    if (world->rank() == 1) world->recv(word, 0, kMaxTag).wait();
    step.run(batch_of(kRows, kRows), nothing);
  });
}

TEST(PipelineStep, ALostPeerEndsTheStep) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    if (world->rank() == 1) return;
    const Task3 task;
    Layers model;
    PipelineStep step(setup_of(model, *task.task, schedule_of(2, 2, 3, one_each, false), world));
    EXPECT_THROW(step.run(batch_of(kRows, kRows), [](Stage, const Step::Result&) {}), CommError);
  });
}

TEST(PipelineStep, RefusesMoreMessagesThanTags) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const Task3 task;
    Layers model;
    EXPECT_THROW(PipelineStep(setup_of(model, *task.task,
                                       schedule_of(
                                           1, 4, 3000, [](int, int) { return 0; }, false),
                                       world)),
                 ConfigError);
  });
}

}  // namespace
}  // namespace phalanx
