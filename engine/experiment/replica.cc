#include "engine/experiment/replica.h"

#include <ATen/Context.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "engine/experiment/make_section.h"
#include "engine/experiment/shared_statistics.h"
#include "framework/base/error.h"
#include "framework/base/random.h"
#include "models/channels_last.h"

namespace phalanx {
namespace {

std::int64_t bytes_of(const Model& model) {
  std::int64_t bytes = 0;
  for (const auto& parameter : model.parameters()) bytes += static_cast<std::int64_t>(parameter.nbytes());
  return bytes;
}

}  // namespace

// LibTorch draws initial values from one generator per process, and ranks may be threads.
std::shared_ptr<Model> make_model(const ExperimentConfig& config, const ModelSpec& spec) {
  static std::mutex generator;
  std::lock_guard lock(generator);
  at::manual_seed(mix(static_cast<std::uint64_t>(config.seed), 0));
  auto model = make_section("model", config.model, spec);
  if (config.train.memory_format == "channels_last") weights_to_channels_last(*model);
  return model;
}

Replica::Replica(const ExperimentConfig& config, Task& task, const Mesh& mesh, const ExperimentContext& context,
                 Watching& watching)
    : config_(config),
      mesh_(mesh),
      model_(make_model(config, task.model())),
      agreement_(choose_agreement(config, context.folder, bytes_of(*model_), mesh)),
      turns_(config, task, *model_),
      parameters_(model_->named_parameters(), *mesh.replicas(), agreement_.bucket_bytes,
                  [this](const std::string& name) { return turns_.of(name); }),
      synchronizer_(make_synchronizer(context)),
      update_(config, make_optimizer(), *synchronizer_, mesh, watching),
      step_(setup_of_step(task, watching)) {}

// Gradients of replicas in threads come together after the last backward.
std::unique_ptr<Synchronizer> Replica::make_synchronizer(const ExperimentContext& context) {
  const auto& train = config_.train;
  if (config_.determinism != "world_size_invariant") {
    return phalanx::make_synchronizer(agreement_.strategy, {.mesh = mesh_,
                                                            .group = mesh_.replicas(),
                                                            .backwards = train.data_parallel > 1 ? 0 : train.accumulate,
                                                            .servers = context.servers,
                                                            .timeout = Seconds(config_.framework.timeout)});
  }
  if (train.virtual_shards % mesh_.batch()->size() != 0) {
    throw ConfigError("train.virtual_shards: " + std::to_string(train.virtual_shards) + " cannot be divided among " +
                      std::to_string(mesh_.batch()->size()) + " ranks; use a multiple");
  }
  auto invariant = std::make_unique<Invariant>(mesh_.replicas(), static_cast<int>(train.virtual_shards));
  invariant_ = invariant.get();
  return invariant;
}

std::unique_ptr<Optimizer> Replica::make_optimizer() const {
  auto elsewhere = synchronizer_->make_optimizer();
  if (!elsewhere) return turns_.make_optimizer();
  if (!turns_.any()) return elsewhere;
  throw ConfigError("strategy: servers that update the parameters take no turns; let the ranks update them");
}

TrainingStep::Setup Replica::setup_of_step(Task& task, Watching& watching) {
  return {.config = config_.train,
          .model = *model_,
          .task = task,
          .turns = turns_,
          .mesh = mesh_,
          .loss_scale = update_.loss_scale(),
          .clock = watching.clock(),
          .parameters = parameters_,
          .make_replica = [this, &task] { return make_model(config_, task.model()); },
          .bucket_bytes = agreement_.bucket_bytes,
          .invariant = invariant_,
          .seed = mix(static_cast<std::uint64_t>(config_.seed), 1)};
}

void Replica::broadcast_buffers() {
  for (auto& buffer : model_->buffers()) mesh_.replicas()->broadcast(buffer, 0).wait();
}

// With an invariant strategy they are equal, to the bit.
NamedTensors Replica::shared_buffers() const {
  return invariant_ ? model_->named_buffers() : phalanx::shared_buffers(*model_, *mesh_.batch());
}

void Replica::as_evaluated(const std::function<void()>& body) {
  std::optional<SharedStatistics> statistics;
  if (invariant_ == nullptr) statistics.emplace(*model_, *mesh_.batch());
  update_.with_averages(body);
}

}  // namespace phalanx
