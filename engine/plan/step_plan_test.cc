// SPDX-License-Identifier: Apache-2.0
// Tests that the plan of a step equals the operations of a real step.
#include "engine/plan/step_plan.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "engine/experiment/plan_check.h"
#include "engine/testing/run.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::Changes;
using ::testing::HasSubstr;
using testing::new_folder;
using testing::run_ranks;
using testing::tiny_config;

std::string text_file() {
  const std::string path = ::testing::TempDir() + "/planned_letters.txt";
  std::ofstream file(path);
  for (int i = 0; i < 3000; ++i) file << static_cast<char>('a' + (i * i / 7 + i / 3) % 10);
  return path;
}

Changes gpt(const Changes& more) {
  Changes changes{"model={name: gpt, layers: 2, heads: 4, width: 16}", "train.global_batch_size=12",
                  "optimizer={name: adamw, lr: 0.003}", "dataset={name: text, file: " + text_file() + ", context: 16}"};
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

Changes experts(const Changes& more) {
  auto changes = gpt(more);
  changes[0] = "model={name: moe_gpt, layers: 2, heads: 4, width: 16, experts: 4}";
  return changes;
}

struct Case {
  std::string name;
  int ranks;
  Changes changes;
};

class PlannedStep : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    EveryMesh, PlannedStep,
    ::testing::Values(
        Case{"all_reduce", 2, {"strategy=all_reduce"}}, Case{"overlapped", 2, {"strategy=overlapped"}},
        Case{"sharded", 3, {"strategy=sharded", "train.clip_norm=1"}},
        Case{"one_copy", 2, {"strategy={name: sharded, one_copy: true}"}}, Case{"chosen", 2, {"strategy=auto"}},
        Case{"gradients_sharded", 3, {"strategy={sharded: {stage: 2}}", "train.clip_norm=1"}},
        Case{"values_sharded", 2, gpt({"strategy={sharded: {stage: 3}}", "train.accumulate=2"})},
        Case{"values_kept", 2, gpt({"strategy={sharded: {stage: 3, reshard_after_forward: false}}"})},
        Case{"data_tensor_values_sharded", 4,
             gpt({"mesh={data: 2, tensor: 2}", "strategy={sharded: {stage: 3}}", "train.clip_norm=1"})},
        Case{"expert_values_sharded", 4,
             experts({"mesh={data: 2, expert: 2}", "strategy={sharded: {stage: 3}}", "train.clip_norm=1"})},
        Case{"accumulated", 2, {"train.accumulate=2"}}, Case{"mlp_tensor", 2, {"mesh.tensor=2", "train.clip_norm=1"}},
        Case{"tensor", 2, gpt({"mesh.tensor=2", "train.clip_norm=1"})},
        Case{"tensor_accumulated", 2, gpt({"mesh.tensor=2", "train.accumulate=2"})},
        Case{"data_tensor", 4, gpt({"mesh={data: 2, tensor: 2}", "strategy=sharded", "train.clip_norm=1"})},
        Case{"pipe", 2, {"mesh.pipe=2", "train.clip_norm=1"}},
        Case{"tied_stages", 4, gpt({"mesh={data: 2, pipe: 2}", "train.clip_norm=1"})},
        Case{"pipe_context", 4, gpt({"mesh={pipe: 2, context: 2}", "train.clip_norm=1"})},
        Case{"pipe_positions", 4, gpt({"mesh={pipe: 2, tensor: 2, sequence_parallel: true}", "train.clip_norm=1"})},
        Case{"async_tensor", 2, gpt({"mesh={tensor: 2, sequence_parallel: true, async_tensor: true}"})},
        Case{"context", 2, gpt({"mesh.context=2", "train.clip_norm=1"})},
        Case{"expert", 2, experts({"mesh.expert=2", "strategy=all_reduce"})},
        Case{"data_expert", 4, experts({"mesh={data: 2, expert: 2}", "strategy=sharded", "train.clip_norm=1"})}),
    [](const auto& info) { return info.param.name; });

TEST_P(PlannedStep, HasTheOperationsOfARun) {
  auto changes = GetParam().changes;
  changes.push_back("launch.ranks=" + std::to_string(GetParam().ranks));
  const auto config = tiny_config(changes);
  const auto splits = config.dataset.make();
  const auto folder = new_folder();
  run_ranks("inproc", GetParam().ranks, [&](const CommunicatorPtr& world) {
    const auto check = check_plan(config, {.world = world, .splits = splits, .folder = folder});
    EXPECT_EQ(check.differences, "");
    EXPECT_FALSE(check.plan.all().empty());
    EXPECT_GT(check.plan.activation_bytes, 0);
    EXPECT_GT(check.predicted, 0);
    EXPECT_GT(check.measured, 0);
  });
}

StepPlan plan(const Changes& changes, int rank = 0) {
  const auto config = tiny_config(changes);
  return plan_step(config, config.dataset.make(), {.rank = rank});
}

TEST(StepPlan, CountsBytesOfEachRank) {
  const auto alone = plan({"strategy=single", "optimizer={name: adamw, lr: 0.1}"});
  EXPECT_EQ(alone.parameters, 256 * 16 + 16 + 16 * 10 + 10);
  EXPECT_GE(alone.parameter_bytes, alone.parameters * 4);
  EXPECT_LT(alone.parameter_bytes, alone.parameters * 4 + 4 * 64);  // each parameter begins at a cache line
  EXPECT_EQ(alone.gradient_bytes, alone.parameter_bytes);
  EXPECT_EQ(alone.optimizer_bytes, 2 * alone.parameter_bytes);
  const auto sharded = plan({"strategy=sharded", "optimizer={name: adamw, lr: 0.1}", "launch.ranks=2"});
  EXPECT_NEAR(static_cast<double>(sharded.optimizer_bytes), static_cast<double>(alone.optimizer_bytes) / 2, 1024);
  const auto whole = plan(gpt({"strategy=single"}));
  const auto third = plan(gpt({"strategy={sharded: {stage: 3}}", "launch.ranks=3"}));
  EXPECT_LT(third.parameter_bytes, 0.36 * static_cast<double>(whole.parameter_bytes));
  EXPECT_LT(third.gradient_bytes, 0.36 * static_cast<double>(whole.gradient_bytes));
}

TEST(StepPlan, ShardsParametersAndActivations) {
  const auto whole = plan(gpt({})), half = plan(gpt({"launch.ranks=2", "mesh.tensor=2"}));
  EXPECT_EQ(whole.parameters, half.parameters);
  EXPECT_LT(half.parameter_bytes, whole.parameter_bytes * 2 / 3);
  EXPECT_LT(half.activation_bytes, whole.activation_bytes);
}

// Calculated by hand. There is one all-reduce in forward and one in backward for each of 2 pairs of layers in 2 blocks,
// one of the embedding, and one of the gradient of the input of the logits. Each has 12 sequences of 16 tokens of 16
// floats. The loss of sharded logits needs two more, of 4 and of 8 bytes a token.
TEST(StepPlan, HasTheAllReducesOfTensorParallelLayers) {
  const auto sharded = plan(gpt({"launch.ranks=2", "mesh.tensor=2"}));
  const OperationCount sums = sharded.layers.at({1U << static_cast<int>(Axis::kTensor), Op::kAllReduce});
  EXPECT_EQ(sums.count, 2 * 2 * 2 + 1 + 1 + 2);
  EXPECT_EQ(sums.bytes, 10 * 12 * 16 * 16 * 4 + 12 * 16 * (4 + 8));
}

// Calculated by hand: two all-gathers of all values, in forward and backward, and one reduce-scatter of all gradients.
TEST(StepPlan, CountsTheGathersOfShardedValuesForTheStrategy) {
  const auto planned = plan({"strategy={sharded: {stage: 3}}", "launch.ranks=2"});
  const auto along_data = 1U << static_cast<int>(Axis::kData);
  const auto gathered = planned.gradients.at({along_data, Op::kAllGather});
  const auto reduced = planned.gradients.at({along_data, Op::kReduceScatter});
  EXPECT_EQ(reduced.count, planned.buckets);
  EXPECT_GE(reduced.bytes, planned.parameters * 4);
  EXPECT_GE(gathered.count, reduced.count);
  EXPECT_LE(gathered.count, 2 * reduced.count);
  EXPECT_TRUE(planned.layers.empty());
}

TEST(StepPlan, SumsUpToOneAllReduceOfEachBucket) {
  const auto planned = plan({"launch.ranks=4", "strategy=all_reduce"});
  const OperationCount reduced = planned.gradients.at({1U << static_cast<int>(Axis::kData), Op::kAllReduce});
  EXPECT_EQ(reduced.count, planned.buckets);
  EXPECT_EQ(reduced.bytes, planned.gradient_bytes);
  EXPECT_DOUBLE_EQ(wire_bytes(Op::kAllReduce, 4, reduced.bytes), 1.5 * static_cast<double>(reduced.bytes));
}

TEST(StepPlan, RefusesStrategiesThatSendMoreThanBuckets) {
  const auto complaint = [](const Changes& changes) -> std::string {
    try {
      plan(changes);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(complaint({"launch.ranks=2", "strategy=gossip"}), HasSubstr("strategy: what gossip sends"));
  EXPECT_THAT(complaint({"launch.ranks=2", "strategy={name: all_reduce, compression: int8}"}),
              HasSubstr("strategy.compression"));
  EXPECT_THAT(complaint({"launch.ranks=3", "roles.server=1", "strategy=sync_ps"}), HasSubstr("roles"));
  for (const char* strategy : {"dc_asgd", "downpour", "easgd", "ssp", "sync_ps"}) {
    EXPECT_THAT(complaint({"launch.ranks=2", std::string("strategy=") + strategy}),
                HasSubstr("exchanges with parameter servers on the ranks, which a plan cannot include"));
  }
  EXPECT_THAT(complaint({"launch.ranks=3", "mesh.tensor=2"}), HasSubstr("mesh"));
}

TEST(StepPlan, HasTheScheduleOfAPipeline) {
  const auto staged = plan({"launch.ranks=2", "mesh.pipe=2", "pipeline.micro_batches=6"});
  EXPECT_EQ(staged.micro_batches, 6);
  EXPECT_DOUBLE_EQ(staged.bubble, 1.0 / 7);
}

}  // namespace
}  // namespace phalanx
