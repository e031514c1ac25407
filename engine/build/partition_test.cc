// SPDX-License-Identifier: Apache-2.0
#include "engine/build/partition.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <map>

#include "engine/build/whole_model.h"
#include "engine/testing/phases.h"

namespace phalanx {
namespace {

using testing::configured;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::refusal;
using testing::run_ranks;

using ByName = std::map<std::string, at::Tensor>;

ByName parameters_of(const Model& model) {
  const NamedTensors all = model.named_parameters();
  return {all.begin(), all.end()};
}

TEST(Partition, LeavesTheModelWholeOnOneRank) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const auto run = configured({});
    const PartitionedModel part = run.part(run.mesh(world));
    EXPECT_THAT(part.placements, IsEmpty());
    EXPECT_FALSE(part.pipeline);
    EXPECT_EQ(parameter_count(part), 4 * 8 + 8 + 8 * 3 + 3);
  });
}

TEST(Partition, GivesEachTensorRankItsPartOfTheLayers) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.tensor=2"});
    const PartitionedModel part = run.part(run.mesh(world));
    const auto own = parameters_of(*part.model), whole = parameters_of(*run.initial_model());
    ASSERT_TRUE(part.placements.contains("fc1.weight"));
    EXPECT_THAT(part.placements.at("fc1.weight").part_shape(), ElementsAre(4, 4));
    for (const auto& [name, placement] : part.placements) {
      EXPECT_TRUE(at::equal(own.at(name), placement.take(whole.at(name)))) << name;
      EXPECT_FALSE(part.same_along_tensor(name));
    }
    EXPECT_TRUE(part.same_along_tensor("fc2.bias"));
    EXPECT_EQ(parameter_count(part), 4 * 8 + 8 + 8 * 3 + 3) << "counts the whole model";
  });
}

TEST(Partition, GivesEachPipelineRankTheBlocksOfItsStages) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.pipe=2"});
    const PartitionedModel part = run.part(run.mesh(world));
    ASSERT_TRUE(part.pipeline);
    const auto own = parameters_of(*part.model);
    EXPECT_EQ(own.contains("fc1.weight"), world->rank() == 0);
    EXPECT_EQ(own.contains("fc2.weight"), world->rank() == 1);
    EXPECT_EQ(part.pipeline->holders("fc2.weight"), 1);
    EXPECT_EQ(part.pipeline->first_holder("fc2.weight"), world->rank() == 1);
    EXPECT_EQ(part.pipeline->parameters().size(), 4u);
    EXPECT_EQ(parameter_count(part), 4 * 8 + 8 + 8 * 3 + 3);
  });
}

TEST(Partition, ChoosesMicroBatchesForTheSamplesOfAStep) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.pipe=2", "train.global_batch_size=64"});
    EXPECT_EQ(run.part(run.mesh(world), 64).pipeline->schedule().micro_batches, 8);
    EXPECT_EQ(run.part(run.mesh(world), 8).pipeline->schedule().micro_batches, 4) << "each pipeline has 4 samples";
  });
}

TEST(Partition, NamesExpertsOfWhichRanksHaveDifferentOnes) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.expert=2", "model={name: moe_gpt, layers: 1, heads: 2, width: 8, experts: 4}"},
                                language_samples(8, 11));
    const PartitionedModel part = run.part(run.mesh(world));
    EXPECT_FALSE(part.experts.empty());
    EXPECT_EQ(part.experts.size(), part.placements.size());
    for (const auto& name : part.experts) EXPECT_TRUE(part.same_along_tensor(name)) << name;
  });
}

TEST(Partition, RefusesAMeshThatTheModelDoesNotSupport) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto message = [&](const std::vector<std::string>& changes) {
      const auto run = configured(changes);
      const Mesh mesh = run.mesh(world);
      return refusal([&] { run.part(mesh); });
    };
    EXPECT_THAT(message({"mesh.expert=2"}), HasSubstr("mesh.expert: model mlp has no experts"));
    EXPECT_THAT(message({"mesh.pipe=2", "model={name: mlp, hidden: []}"}),
                HasSubstr("has 1 blocks (fc1), but 2 stages need one each"));
    EXPECT_THAT(message({"mesh.pipe=2", "pipeline.cut=[fc7]"}), HasSubstr("\"fc7\" is not a block of the model"));
    EXPECT_THAT(message({"mesh.tensor=2", "plan=[{layers: fc1, style: column}, {layers: fc1, style: row}]"}),
                HasSubstr("plan: has \"fc1\" twice"));
  });
}

}  // namespace
}  // namespace phalanx
