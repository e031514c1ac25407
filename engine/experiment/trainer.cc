// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/trainer.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "datasets/resident_loader.h"
#include "datasets/sampler.h"
#include "engine/build/sequence_share.h"
#include "engine/build/split_loader.h"
#include "framework/base/error.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {
namespace {

// Returns the samples of a step on the ranks that there are (faults.batch).
std::int64_t batch_of(const ExperimentConfig& config, const ExperimentContext& context) {
  const auto batch = config.train.global_batch_size;
  if (context.recovery == nullptr || !config.faults.keeps_batch_per_rank()) return batch;
  if (context.recovery->ranks == 0) context.recovery->ranks = context.world->size();
  return batch * context.world->size() / context.recovery->ranks;
}

// Returns the function that makes the loader of training, for a trainer that has everything before it. `batch`: samples
// of a step. The config must outlive the function.
ContinuedLoader::Make training_loader(const ExperimentConfig& config, const std::shared_ptr<const Dataset>& split,
                                      const Trainer& trainer, std::int64_t batch) {
  return [&config, split, batch, group = trainer.replica.mesh().samples(), shares = trainer.shares->shares(),
          preparation = trainer.preparation](std::int64_t skipped) -> std::unique_ptr<Loader> {
    if (!config.loader.resident) {
      return preparation.of(make_split_loader(split, batch, config, SplitUse::kTraining, *group, shares, skipped));
    }
    if (preparation.device.is_cpu()) {
      throw ConfigError(
          "loader.resident: keeps samples in the memory of a device, but this run computes on the CPU; "
          "remove it");
    }
    return make_resident_loader(split,
                                split_options(*split, batch, config, SplitUse::kTraining, *group, shares, skipped),
                                preparation.device, preparation.complete);
  };
}

// Returns the length of a run whose loader has batches of `batch` samples.
RunLength length_of(const ExperimentConfig& config, const Dataset& split, const Trainer& trainer, std::int64_t batch) {
  const auto& train = config.train;
  const auto length_with = [&](std::int64_t batches) {
    RunLength length{.samples = split.size(),
                     .batches = batches,
                     .epochs = train.epochs,
                     .most_steps = train.max_steps,
                     .batch = batch};
    length.count_steps(0, 0, 0);
    return length;
  };
  RunLength length = length_with(trainer.loader->batches());
  const bool other = batch != train.global_batch_size;
  const auto configured = [&] {
    const auto& group = *trainer.replica.mesh().samples();
    return BatchSampler(split_options(split, train.global_batch_size, config, SplitUse::kTraining, group)).batches();
  };
  const RunLength whole = other ? length_with(configured()) : length;
  length.configured = {.batches = whole.batches, .steps = whole.steps, .batch = train.global_batch_size};
  return length;
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
  const auto batch = batch_of(config, context);
  trainer.replica =
      build_replica(config, task, mesh,
                    {.device = context.device, .folder = context.folder, .servers = context.servers, .batch = batch},
                    *trainer.watching);
  Replica& replica = trainer.replica;
  trainer.embeddings = std::make_unique<ServedEmbeddings>(config, replica.model(), mesh, context.servers);
  trainer.shares = std::make_unique<SampleShares>(config, mesh, trainer.watching->clock());
  auto loader = std::make_unique<ContinuedLoader>(training_loader(config, splits.train, trainer, batch));
  trainer.continued = loader.get();
  trainer.loader = trainer.embeddings->with_lookahead(std::move(loader));
  trainer.length = length_of(config, *splits.train, trainer, batch);
  trainer.learning_rate =
      std::make_unique<LearningRate>(config.schedule.make(), replica.optimizer(), trainer.length.configured.steps);
  trainer.engine = std::make_unique<Engine>(replica.step->step(), replica.optimizer(), replica.strategy());
  return trainer;
}

}  // namespace phalanx
