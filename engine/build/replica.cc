// SPDX-License-Identifier: Apache-2.0
#include "engine/build/replica.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/build/build_optimizer.h"
#include "engine/build/make_model.h"
#include "engine/build/shared_statistics.h"
#include "engine/build/updaters.h"
#include "engine/build/whole_model.h"
#include "engine/step/recorded_update.h"
#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/partition/pipeline/timeline.h"
#include "models/block_chain.h"
#include "models/embedding/served_rows.h"

namespace phalanx {
namespace {

// Returns why a graph of the device cannot contain the exchange of gradients and the update. Empty if it can, as far as
// is known before the first step.
std::string why_update_is_not_in_graph(const ExperimentConfig& config, const Replica& replica) {
  const auto device = replica.part->device.type();
  const auto in_graphs = [device](const CommunicatorPtr& group) { return group->in_graphs(device); };
  if (!replica.settings.strategy.traits().in_graph) {
    return "strategy: " + replica.settings.strategy.selected() + " does more than reduce gradients on the device";
  }
  if (!in_graphs(replica.mesh().world()) ||
      !std::ranges::all_of(replica.flat->groups, in_graphs, &DataParallelGroup::group)) {
    return "the ranks do not exchange tensors by NCCL, or not by NCCL alone, and so the host takes part";
  }
  if (replica.turns->any()) return "the task trains in turns";
  if (served_rows_of(replica.model()) != nullptr) return "the model has rows of embeddings on parameter servers";
  if (config.train.precision == "fp64") return "LibTorch's kernels read a learning rate of float32 from the device";
  if (config.watch.gradient_norms.every_steps > 0) {
    return "watch.gradient_norms reads gradients between backward and update";
  }
  if (config.expect.traffic.tolerance) return "expect.traffic counts the operations that the host launches";
  return replica.optimizer().why_not_recorded();
}

// Throws ConfigError if the strategy communicates within a recorded step, unless the graph is the whole step. `why_not`
// is the result of the function above.
void refuse_to_record_messages(const ResolvedSettings& settings, const std::string& why_not) {
  const auto traits = settings.strategy.traits();
  const bool communicates = traits.overlaps_backward || traits.frees_gradients || traits.shards_values;
  if (!communicates || why_not.empty()) return;
  throw ConfigError("strategy: " + settings.strategy.selected() +
                    " communicates within forward or backward, which train.cuda_graph records only together with the "
                    "update; " +
                    why_not + "; use all_reduce, which communicates afterwards");
}

// Returns null if there is no graph, or if it ends with backward.
std::shared_ptr<RecordedUpdate> build_recorded_update(const ExperimentConfig& config, const Replica& replica,
                                                      StepClock& clock) {
  if (!config.train.cuda_graph) return nullptr;
  const std::string why_not = why_update_is_not_in_graph(config, replica);
  refuse_to_record_messages(replica.settings, why_not);
  if (!why_not.empty()) {
    log_graph_without_update(why_not);
    return nullptr;
  }
  return std::make_shared<RecordedUpdate>(replica.strategy(), replica.optimizer(), clock, replica.mesh().control(),
                                          replica.settings.strategy.traits().overlaps_backward);
}

// Makes the step of a replica that has everything else.
std::unique_ptr<TrainingStep> build_step(const ExperimentConfig& config, Task& task, Replica& replica,
                                         StepClock& clock) {
  const PartitionedModel& part = *replica.part;
  const Updaters updaters(part, replica.settings.strategy.traits());
  auto* const frees = replica.strategy().extensions().frees_gradients;
  return std::make_unique<TrainingStep>(TrainingStep::Setup{
      .config = config.train,
      .mesh = part.mesh,
      .trained = {.model = *part.model,
                  .task = task,
                  .turns = *replica.turns,
                  .pipeline = part.pipeline ? &*part.pipeline : nullptr,
                  .device = part.device},
      .gradients = {.loss_scale = replica.update->loss_scale(),
                    .after_backward = frees ? std::function<void()>([frees] { frees->after_backward(); }) : nullptr,
                    .invariant = replica.replica_strategy.invariant,
                    .of_first_tensor_rank = updaters.of_first_tensor_rank()},
      .replicas = {.make = [&] { return make_other_model(config, task.model(), *part.model); },
                   .parameters = replica.flat->parameters,
                   .bucket_bytes = replica.settings.bucket_bytes,
                   .parts = replica.flat->parts,
                   .unused = *replica.replica_strategy.unused},
      .clock = clock,
      .seed = mix(static_cast<std::uint64_t>(config.seed), 1),
      .update = build_recorded_update(config, replica, clock)});
}

}  // namespace

Replica build_replica(const ExperimentConfig& config, Task& task, const Mesh& mesh, const ReplicaContext& context,
                      Watching& watching) {
  Replica replica;
  auto model = make_initial_model(config, task.model(), mesh.world()->rank() == 0);
  const auto batch = context.batch > 0 ? context.batch : config.train.global_batch_size;
  replica.part = std::make_unique<PartitionedModel>(partition(config, task, mesh, std::move(model), batch));
  PartitionedModel& part = *replica.part;
  replica.settings = resolve_settings(config, context.folder, part, context.device);
  replica.turns = std::make_unique<TrainingTurns>(config, task, *part.model);
  place(part, context.device);
  replica.flat = std::make_unique<FlatModel>(flatten(config, part, replica.settings, *replica.turns));
  replica.replica_strategy = build_strategy(config, part, replica.settings, *replica.flat, context.servers,
                                            watching.gradient_norms().observer());
  auto optimizer = build_optimizer(config, part, *replica.turns, *replica.flat, replica.strategy());
  const Updaters updaters(part, replica.settings.strategy.traits());
  replica.update = std::make_unique<ParameterUpdate>(config.train, std::move(optimizer), updaters,
                                                     replica.replica_strategy, watching);
  replica.step = build_step(config, task, replica, watching.clock());
  if (auto* const sharded = replica.strategy().extensions().shards_parameters) {
    auto* const chain = as<BlockChain>(*part.model);  // flatten() refuses other models
    chain->set_block_runner(sharded->run_blocks(chain->blocks()));
  }
  return replica;
}

bool Replica::ranks_are_equal() const {
  return settings.strategy.traits().ranks_are_equal() && goes_on_from_own_state();
}

bool Replica::goes_on_from_own_state() const {
  const MeshShape& shape = mesh().shape();
  const auto traits = settings.strategy.traits();
  return (traits.ranks_are_equal() || traits.keeps_centre) && shape[Axis::kData] == shape.product();
}

std::vector<DataParallelGroup> Replica::copied_groups() const {
  return settings.strategy.traits().shards_values ? std::vector<DataParallelGroup>{} : flat->groups;
}

std::set<std::string> Replica::elsewhere() const {
  return kept_elsewhere(*part, Updaters(*part, settings.strategy.traits()));
}

std::vector<CheckpointPart> Replica::parts() const {
  auto parts = update->parts();
  for (auto& of_turns : turns->parts()) parts.push_back(std::move(of_turns));
  return parts;
}

void Replica::broadcast_buffers() const {
  for (auto& buffer : model().buffers()) mesh().replicas()->broadcast(buffer, 0).wait();
}

// With an invariant strategy, the buffers of all ranks have the same bits.
NamedTensors Replica::shared_buffers() const {
  return replica_strategy.invariant ? model().named_buffers() : phalanx::shared_buffers(model(), *mesh().batch());
}

void Replica::as_evaluated(const std::function<void()>& body) const {
  std::optional<SharedStatistics> statistics;
  if (replica_strategy.invariant == nullptr) statistics.emplace(model(), *mesh().batch());
  update->with_averages([&] {
    step->broadcast_from_owners();
    body();
  });
  step->broadcast_from_owners();  // they are no longer averages
}

NamedTensors Replica::whole_weights(bool wanted) const {
  NamedTensors weights;
  with_full_parameters(strategy(), [&] {
    weights = gather_whole_model(*part, wanted);
    if (!settings.strategy.traits().shards_values) return;
    for (auto& [name, tensor] : weights) tensor = tensor.detach().clone();
  });
  return weights;
}

void Replica::unshard() const {
  auto* const sharded = strategy().extensions().shards_parameters;
  if (sharded == nullptr) return;
  sharded->unshard();
  as<BlockChain>(model())->set_block_runner(nullptr);
}

Metrics Replica::pipeline_metrics() const {
  if (!part->pipeline) return {};
  const auto& schedule = part->pipeline->schedule();
  const at::Tensor idle = at::full({1}, step->pipeline()->idle(), at::kDouble);
  const at::Tensor live = at::full({1}, static_cast<double>(step->pipeline()->max_live()), at::kDouble);
  {
    const MeasuredInputs measured;
    mesh().control()->all_reduce(idle, Reduction::kMean).wait();
  }
  mesh().control()->all_reduce(live, Reduction::kMax).wait();
  return {{"pipeline_bubble", idle.item<double>()},
          {"pipeline_bubble_of_schedule", pipeline::simulate(schedule, kStepCosts).bubble},
          {"pipeline_micro_batches", schedule.micro_batches},
          {"pipeline_live_micro_batches", live.item<double>()}};
}

}  // namespace phalanx
