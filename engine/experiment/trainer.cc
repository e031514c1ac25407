// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/trainer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "datasets/resident_loader.h"
#include "engine/build/sequence_share.h"
#include "engine/build/split_loader.h"
#include "framework/base/error.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {
namespace {

// Returns the loader of a trainer that has everything before it.
std::unique_ptr<Loader> training_loader(const ExperimentConfig& config, const std::shared_ptr<const Dataset>& split,
                                        const Trainer& trainer) {
  const auto batch = config.train.global_batch_size;
  const auto& group = *trainer.replica.mesh().samples();
  const auto shares = trainer.shares->shares();
  const Preparation& preparation = trainer.preparation;
  if (!config.loader.resident) {
    return trainer.embeddings->with_lookahead(
        preparation.of(make_split_loader(split, batch, config, SplitUse::kTraining, group, shares)));
  }
  if (preparation.device.is_cpu()) {
    throw ConfigError(
        "loader.resident: keeps samples in the memory of a device, but this run computes on the CPU; "
        "remove it");
  }
  return trainer.embeddings->with_lookahead(
      make_resident_loader(split, split_options(*split, batch, config, SplitUse::kTraining, group, shares),
                           preparation.device, preparation.complete));
}

RunLength length_of(const TrainConfig& train, std::int64_t samples, std::int64_t batches) {
  const auto steps = train.epochs * batches;
  return {
      .samples = samples, .batches = batches, .steps = train.max_steps == 0 ? steps : std::min(steps, train.max_steps)};
}

}  // namespace

Trainer build_trainer(const ExperimentConfig& config, const Splits& splits, Task& task,
                      const ExperimentContext& context) {
  Trainer trainer;
  const Mesh mesh(context.world, mesh_shape(config.mesh, context.world->size()));
  const SequenceShare sequence(task, splits.train->spec(), mesh.along(Axis::kContext));
  trainer.preparation = {.complete = complete_batches(task, sequence), .device = context.device};
  trainer.watching = std::make_unique<Watching>(config.watch, mesh.control(), context.folder, config.train.digests);
  trainer.watching->clock().measure_on(context.device);
  trainer.replica = build_replica(config, task, mesh,
                                  {.device = context.device, .folder = context.folder, .servers = context.servers},
                                  *trainer.watching);
  Replica& replica = trainer.replica;
  trainer.embeddings = std::make_unique<ServedEmbeddings>(config, replica.model(), mesh, context.servers);
  trainer.shares = std::make_unique<SampleShares>(config, mesh, trainer.watching->clock());
  trainer.loader = training_loader(config, splits.train, trainer);
  trainer.length = length_of(config.train, splits.train->size(), trainer.loader->batches());
  trainer.learning_rate =
      std::make_unique<LearningRate>(config.schedule.make(), replica.optimizer(), trainer.length.steps);
  trainer.engine = std::make_unique<Engine>(replica.step->step(), replica.optimizer(), replica.strategy());
  return trainer;
}

}  // namespace phalanx
