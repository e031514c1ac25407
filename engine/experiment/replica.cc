// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/replica.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/experiment/make_model.h"
#include "engine/experiment/shared_statistics.h"
#include "engine/optim/matrix_exchange.h"
#include "engine/sync/grouped.h"
#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/parallel/pipeline/timeline.h"
#include "models/trained.h"
#include "models/weights_layout.h"

namespace phalanx {
namespace {

std::int64_t bytes_of(const Model& model) {
  std::int64_t bytes = 0;
  for (const auto& [name, parameter] : trained_parameters(model)) {
    bytes += static_cast<std::int64_t>(parameter.nbytes());
  }
  return bytes;
}

}  // namespace

Replica::Replica(const ExperimentConfig& config, Task& task, const Mesh& mesh, const ExperimentContext& context,
                 Watching& watching)
    : config_(config),
      mesh_(mesh),
      model_(make_initial_model(config, task.model(), mesh.world()->rank() == 0)),
      divided_(divide_model(config, task, mesh, *model_)),
      pipeline_(divide_into_stages(task)),
      whole_(mesh, *model_, divided_, pipeline()),
      agreement_(choose_agreement(config, context.folder, bytes_of(*model_), mesh)),
      turns_(config, task, *model_),
      device_(moved_to(context.device)),
      parameters_(updated_here(), *mesh.replicas(), agreement_.bucket_bytes, bucket_groups()),
      groups_(replica_groups(mesh, parameters_, [this](const std::string& name) { return divided_.is_expert(name); })),
      synchronizer_(make_synchronizer(context)),
      unused_(groups_, [this](const std::string& name) { return pipeline_ && pipeline_->updaters(name) > 1; }),
      update_(config, make_optimizer(), *synchronizer_, mesh, parts_of_norm(), watching, device_,
              [this] { return find_unused(); }),
      step_(setup_of_step(task, watching)) {
  if (BlockRunner runner = synchronizer_->run_blocks(model_->blocks())) model_->run_blocks_by(std::move(runner));
}

std::optional<Pipeline> Replica::divide_into_stages(const Task& task) {
  if (config_.mesh.pipe == 1) return std::nullopt;
  return Pipeline(config_, *model_, task, mesh_, arithmetic_of(config_.train, task.model()));
}

// Moves the model to the device after it was made and divided on the CPU: the device need not have memory for the parts
// of other ranks.
c10::Device Replica::moved_to(c10::Device device) const {
  if (!device.is_cpu()) move_weights(*model_, device);
  return device;
}

// Returns true if only the first tensor rank updates the parameter. Parameter servers have each parameter once: two
// copies that they update in the order of arrival would diverge.
bool Replica::lends_along_tensor(const std::string& parameter) const {
  return agreement_.strategy.traits().parameter_servers && mesh_.along(Axis::kTensor)->size() > 1 &&
         divided_.same_along_tensor(parameter);
}

bool Replica::updates(const std::string& parameter) const {
  if (pipeline_ && !pipeline_->updates(parameter)) return false;
  return !lends_along_tensor(parameter) || mesh_.position(Axis::kTensor) == 0;
}

std::set<std::string> Replica::elsewhere() const {
  return whole_.elsewhere([this](const std::string& name) { return updates(name); });
}

std::vector<at::Tensor> Replica::lent_along_tensor() const {
  std::vector<at::Tensor> lent;
  for (const auto& [name, parameter] : trained_parameters(*model_)) {
    const bool of_stage = !pipeline_ || pipeline_->updates(name);
    if (of_stage && lends_along_tensor(name)) lent.push_back(parameter);
  }
  return lent;
}

// The norm sums over ranks. If several of them have the same parameter, each adds a fraction of its square.
Clip::Parts Replica::parts_of_norm() const {
  return {.count = divided_.experts.empty() ? 1u : 2u,
          .of = [this](const std::string& name) { return divided_.experts.count(name); },
          .share =
              [this](const std::string& name) {
                const bool alike = divided_.same_along_tensor(name) && !lends_along_tensor(name);
                const int tensor_ranks = alike ? mesh_.along(Axis::kTensor)->size() : 1;
                return 1.0 / (tensor_ranks * (pipeline_ ? pipeline_->updaters(name) : 1));
              }};
}

// Throws ConfigError on all ranks if one of them has nothing to update: it would not take part in operations of the
// other ranks.
void Replica::refuse_idle_ranks(bool idle) const {
  if (!agreement_.strategy.traits().parameter_servers || mesh_.along(Axis::kTensor)->size() == 1) return;
  const at::Tensor any = at::full({1}, idle ? 1 : 0, at::kLong);
  mesh_.control()->all_reduce(any, Reduction::kMax).wait();
  if (any.item<std::int64_t>() == 0) return;
  throw ConfigError(
      "mesh.tensor: parameter servers have each parameter once, so the first rank of the axis updates the parameters "
      "that all of its ranks share. These are all parameters that are trained" +
      std::string(pipeline_ ? " in one of the stages" : "") +
      ", and the other ranks would have nothing to update; divide more layers (plan), or use another strategy");
}

// Experts come last. A bucket cannot hold both experts and other parameters, so the order of the blocks, in which the
// two alternate, would lead to many small buckets.
NamedTensors Replica::updated_here() const {
  NamedTensors parameters = trained_parameters(*model_);
  const bool any = !parameters.empty();
  std::erase_if(parameters, [this](const auto& named) { return !updates(named.first); });
  refuse_idle_ranks(any && parameters.empty());
  std::ranges::stable_partition(parameters, [this](const auto& named) { return !divided_.is_expert(named.first); });
  return parameters;
}

// If a strategy has values only while a block needs them, each bucket belongs to one block. Parameters of several
// blocks and parameters of no block are in separate buckets.
FlatParameters::GroupOf Replica::bucket_groups() const {
  if (!agreement_.strategy.traits().shards_values) {
    return [this](const std::string& name) { return 2 * turns_.of(name) + divided_.experts.count(name); };
  }
  const auto& blocks = model_->blocks();
  if (blocks.empty()) {
    throw ConfigError("strategy.stage: 3 gathers the parameters of one block of the model after the other, and model " +
                      config_.model.selected() +
                      " is not a chain of blocks, as gpt, mlp, lenet and resnet18 are; use stage: 2");
  }
  std::map<std::string, std::size_t> block_of;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const auto& name : blocks[i].parameters) {
      const auto [at, first] = block_of.emplace(name, i);
      if (!first) at->second = blocks.size();
    }
  }
  return [this, block_of = std::move(block_of), none = blocks.size() + 1](const std::string& name) {
    const auto found = block_of.find(name);
    return 2 * (found == block_of.end() ? none : found->second) + divided_.experts.count(name);
  };
}

std::vector<ReplicaGroup> Replica::groups() const {
  return agreement_.strategy.traits().shards_values ? std::vector<ReplicaGroup>{} : groups_;
}

NamedTensors Replica::whole_weights(bool wanted) const {
  NamedTensors weights;
  synchronizer_->with_values([&] {
    weights = whole_.gather(wanted);
    if (!agreement_.strategy.traits().shards_values) return;
    for (auto& [name, tensor] : weights) tensor = tensor.detach().clone();
  });
  return weights;
}

Figures Replica::pipeline_figures() const {
  if (!pipeline_) return {};
  const at::Tensor idle = at::full({1}, step_.pipeline()->idle(), at::kDouble);
  const at::Tensor live = at::full({1}, static_cast<double>(step_.pipeline()->most_live()), at::kDouble);
  mesh_.control()->all_reduce(idle, Reduction::kMean).wait();
  mesh_.control()->all_reduce(live, Reduction::kMax).wait();
  return {{"pipeline_bubble", idle.item<double>()},
          {"pipeline_bubble_of_schedule", pipeline::simulate(pipeline_->schedule(), kStepCosts).bubble},
          {"pipeline_micro_batches", pipeline_->schedule().micro_batches},
          {"pipeline_live_micro_batches", live.item<double>()}};
}

// With replicas in threads, or parameters that several ranks of a pipeline have, gradients are complete only after the
// last backward.
std::unique_ptr<Synchronizer> Replica::make_synchronizer(const ExperimentContext& context) {
  const auto& train = config_.train;
  if (config_.determinism != "world_size_invariant") {
    std::vector<GroupedSynchronizer::Member> members;
    for (const auto& of : groups_) {
      members.push_back(
          {of, phalanx::make_synchronizer(agreement_.strategy,
                                          {.mesh = mesh_,
                                           .group = of.group,
                                           .backwards = train.data_parallel > 1 || pipeline_ ? 0 : train.accumulate,
                                           .servers = context.servers,
                                           .timeout = Seconds(config_.framework.timeout)})});
    }
    if (members.size() == 1) return std::move(members[0].strategy);
    return std::make_unique<GroupedSynchronizer>(std::move(members));
  }
  if (train.virtual_shards % mesh_.batch()->size() != 0) {
    throw ConfigError("train.virtual_shards: " + std::to_string(train.virtual_shards) + " cannot be divided among " +
                      std::to_string(mesh_.batch()->size()) + " ranks; use a multiple");
  }
  auto invariant = std::make_unique<Invariant>(mesh_.replicas(), static_cast<int>(train.virtual_shards));
  invariant_ = invariant.get();
  return invariant;
}

// Ranks that make the same update must skip the same parameters. A parameter that several stages of a pipeline have
// always counts as used, since its gradient may come from another stage.
std::set<std::string> Replica::find_unused() {
  unused_.agree(synchronizer_->gradient_groups());
  return unused_.names();
}

std::unique_ptr<Optimizer> Replica::make_optimizer() {
  auto elsewhere = synchronizer_->make_optimizer();
  if (!elsewhere) {
    auto optimizer = turns_.make_optimizer();
    if (!divided_.placements.empty()) gather_parts(*optimizer);
    return optimizer;
  }
  if (!turns_.any()) return elsewhere;
  throw ConfigError("strategy: servers that update the parameters cannot do so in turns; let the ranks update them");
}

// Makes an optimizer of whole parameters gather their parts from other ranks, or throws ConfigError if it cannot.
void Replica::gather_parts(Optimizer& optimizer) const {
  constexpr AxisSet kPartsAndReplicas{Axis::kData, Axis::kTensor, Axis::kExpert, Axis::kContext};
  const auto& group = mesh_.group(kPartsAndReplicas);  // collective, so all ranks call it
  if (optimizer.cut() == Cut::kAnywhere) return;
  if (auto* const gathers = dynamic_cast<GathersMatrices*>(&optimizer)) {
    const auto options = parameters_.buckets().at(0).values.options();
    return gathers->gather_by(std::make_unique<MatrixExchange>(group, divided_.placements, options));
  }
  throw ConfigError(
      std::string("mesh.") + (mesh_.along(Axis::kTensor)->size() > 1 ? "tensor" : "expert") + ": optimizer " +
      config_.optimizer.selected() +
      " needs whole parameters, but each rank has only a part of them; use muon, which gathers them unless a task "
      "trains in turns, or one that updates each element on its own, such as adamw");
}

// Throws ConfigError if the strategy communicates within a recorded step. The replay omits communication, which the
// host starts.
void Replica::refuse_to_record_messages() const {
  const auto& traits = agreement_.strategy.traits();
  if (!config_.train.cuda_graph || !(traits.overlaps_backward || traits.frees_gradients || traits.shards_values))
    return;
  throw ConfigError("strategy: " + agreement_.strategy.selected() +
                    " communicates within forward or backward, which train.cuda_graph replays without communication; "
                    "use all_reduce, which communicates afterwards");
}

TrainingStep::Setup Replica::setup_of_step(Task& task, Watching& watching) {
  refuse_to_record_messages();
  return {.config = config_.train,
          .model = *model_,
          .task = task,
          .turns = turns_,
          .mesh = mesh_,
          .loss_scale = update_.loss_scale(),
          .clock = watching.clock(),
          .parameters = parameters_,
          .unused = unused_,
          .make_replica = [this, &task] { return make_other_model(config_, task.model(), *model_); },
          .bucket_bytes = agreement_.bucket_bytes,
          .invariant = invariant_,
          .after_backward = agreement_.strategy.traits().frees_gradients
                                ? std::function<void()>([this] { synchronizer_->after_backward(); })
                                : nullptr,
          .pipeline = pipeline(),
          .lent = lent_along_tensor(),
          .seed = mix(static_cast<std::uint64_t>(config_.seed), 1),
          .device = device_};
}

std::vector<CheckpointPart> Replica::parts() {
  auto parts = update_.parts();
  for (auto& part : turns_.parts()) parts.push_back(std::move(part));
  return parts;
}

void Replica::broadcast_buffers() {
  for (auto& buffer : model_->buffers()) mesh_.replicas()->broadcast(buffer, 0).wait();
}

// With an invariant strategy, the buffers of all ranks have the same bits.
NamedTensors Replica::shared_buffers() const {
  return invariant_ ? model_->named_buffers() : phalanx::shared_buffers(*model_, *mesh_.batch());
}

void Replica::keep_values() {
  synchronizer_->keep_values();
  if (agreement_.strategy.traits().shards_values) model_->run_blocks_by(nullptr);
}

void Replica::as_evaluated(const std::function<void()>& body) {
  std::optional<SharedStatistics> statistics;
  if (invariant_ == nullptr) statistics.emplace(*model_, *mesh_.batch());
  update_.with_averages([&] {
    step_.lend_parameters();
    body();
  });
  step_.lend_parameters();  // they are no longer averages
}

}  // namespace phalanx
