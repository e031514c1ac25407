// SPDX-License-Identifier: Apache-2.0
#include "engine/build/parameter_update.h"

#include <gmock/gmock.h>

#include "engine/build/build_optimizer.h"
#include "engine/testing/phases.h"

namespace phalanx {
namespace {

using testing::configured;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using testing::refusal;
using testing::run_ranks;
using ::testing::SizeIs;

// Calls `body` with the update of a run of one rank, built by its own phases.
void with_update(const std::vector<std::string>& changes, const std::function<void(ParameterUpdate&)>& body) {
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    const auto run = configured(changes);
    const Mesh mesh = run.mesh(world);
    Watching watching(run.config.watch, mesh.control(), RunFolder());
    const PartitionedModel part = run.part(mesh);
    const ResolvedSettings settings{.strategy = run.config.strategy, .bucket_bytes = 1 << 20};
    TrainingTurns turns(run.config, *run.task, *part.model);
    const FlatModel flat = flatten(run.config, part, settings, turns);
    const ReplicaStrategy strategy = build_strategy(run.config, part, settings, flat, nullptr);
    auto optimizer = build_optimizer(run.config, part, turns, flat, *strategy.strategy);
    const Updaters updaters(part, settings.strategy.traits());
    ParameterUpdate update(run.config.train, std::move(optimizer), updaters, strategy, watching);
    body(update);
  });
}

TEST(ParameterUpdate, ReadsNothingWithoutWrappers) {
  with_update({}, [](ParameterUpdate& update) {
    EXPECT_THAT(update.metrics(), IsEmpty());
    EXPECT_THAT(update.parts(), IsEmpty());
    EXPECT_FALSE(update.loss_scale().defined());
  });
}

TEST(ParameterUpdate, ReadsTheNormAndTheLossScale) {
  with_update({"train.clip_norm=1", "train.precision=fp16"}, [](ParameterUpdate& update) {
    EXPECT_THAT(update.metrics(), ElementsAre(Key("gradient_norm"), Key("loss_scale"), Key("skipped_updates")));
    EXPECT_THAT(update.parts(), SizeIs(2));
    EXPECT_GT(update.loss_scale().item<float>(), 1);
  });
}

TEST(BuildOptimizer, RefusesOptimizersOfWholeParametersForParts) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.tensor=2", "optimizer=lamb"});
    const PartitionedModel part = run.part(run.mesh(world));
    const ResolvedSettings settings{.strategy = run.config.strategy, .bucket_bytes = 1 << 20};
    TrainingTurns turns(run.config, *run.task, *part.model);
    const FlatModel flat = flatten(run.config, part, settings, turns);
    const ReplicaStrategy strategy = build_strategy(run.config, part, settings, flat, nullptr);
    EXPECT_THAT(refusal([&] { build_optimizer(run.config, part, turns, flat, *strategy.strategy); }),
                HasSubstr("mesh.tensor: optimizer lamb needs whole parameters"));
  });
}

TEST(BuildStrategy, RefusesVirtualShardsThatRanksCannotDivide) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"determinism=world_size_invariant", "train.virtual_shards=3"});
    const PartitionedModel part = run.part(run.mesh(world));
    const ResolvedSettings settings{.strategy = run.config.strategy, .bucket_bytes = 1 << 20};
    const TrainingTurns turns(run.config, *run.task, *part.model);
    const FlatModel flat = flatten(run.config, part, settings, turns);
    EXPECT_THAT(refusal([&] { build_strategy(run.config, part, settings, flat, nullptr); }),
                HasSubstr("train.virtual_shards: 3 cannot be divided among 2 ranks"));
  });
}

}  // namespace
}  // namespace phalanx
