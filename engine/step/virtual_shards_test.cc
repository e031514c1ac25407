// SPDX-License-Identifier: Apache-2.0
#include "engine/step/virtual_shards.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "framework/base/parts.h"
#include "framework/parallel/step.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr int kShards = 4;

// Adds the sum of the inputs to a buffer, as batch norm changes its running statistics.
class SummingStep final : public Step {
 public:
  Result run(const Batch& batch, const Watch&) override {
    buffer.add_(batch.inputs.at(0).sum());
    return result_of(batch);
  }
  Result evaluate(const Batch& batch, const Watch&) override { return result_of(batch); }

  at::Tensor buffer = at::zeros({1});

 private:
  static Result result_of(const Batch& batch) {
    return {.outputs = batch.inputs, .loss = at::zeros({}), .weight = batch.weight()};
  }
};

// A rank of a world, with its step and its shards.
struct RankOfShards {
  explicit RankOfShards(const CommunicatorPtr& world)
      : rank(world->rank()),
        shards(step, world, {step.buffer},
               {.shards = kShards, .current = std::make_shared<CurrentStep>(1), .on_empty = [this] { ++empty_steps; }},
               [](int) {}) {}

  // Trains on this rank's share of samples 0, 1, ..., `samples` - 1.
  void train(std::int64_t samples, int ranks) {
    const auto begin = part_begin(samples, kShards, kShards / ranks * rank),
               end = part_begin(samples, kShards, kShards / ranks * (rank + 1));
    const bool empty = begin == end;  // there is a row of padding then
    shards.run({.inputs = {empty ? at::zeros({1}) : at::arange(begin, end).to(at::kFloat)},
                .targets = {at::zeros({empty ? 1 : end - begin})},
                .valid = end - begin,
                .global_rows = samples},
               [](Stage, const Step::Result&) {});
  }

  int rank;
  SummingStep step;
  int empty_steps = 0;
  VirtualShards shards;
};

TEST(VirtualShards, ChangeBuffersByTheMeanOfTheirChanges) {
  for (const int ranks : {1, 2}) {
    testing::run_ranks("inproc", ranks, [ranks](const CommunicatorPtr& world) {
      RankOfShards own(world);
      own.step.buffer.fill_(10);
      own.train(8, ranks);
      EXPECT_EQ(own.step.buffer.item<float>(), 10 + 28.0F / kShards) << ranks;
    });
  }
}

TEST(VirtualShards, LeaveBuffersDifferentThatDifferedBefore) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    RankOfShards own(world);
    own.step.buffer.fill_(world->rank() == 0 ? 10 : 11);
    own.train(8, 2);
    EXPECT_EQ(own.step.buffer.item<float>(), (world->rank() == 0 ? 10 : 11) + 28.0F / kShards);
  });
}

TEST(VirtualShards, SayWhenTheRankHasNoSample) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    RankOfShards own(world);
    own.train(8, 2);
    EXPECT_EQ(own.empty_steps, 0);
    own.train(1, 2);
    EXPECT_EQ(own.empty_steps, world->rank() == 0 ? 0 : 1) << "the first shard has the sample";
    EXPECT_EQ(own.step.buffer.item<float>(), 28.0F / kShards) << "the sample is 0";
  });
}

}  // namespace
}  // namespace phalanx
