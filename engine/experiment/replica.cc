#include "engine/experiment/replica.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "engine/experiment/initial_weights.h"
#include "engine/experiment/make_section.h"
#include "engine/experiment/shared_statistics.h"
#include "engine/optim/matrix_exchange.h"
#include "engine/sync/grouped.h"
#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/random.h"
#include "framework/parallel/pipeline/timeline.h"
#include "models/low_rank.h"
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

TensorPlan plan_of(const ExperimentConfig& config, const Model& model) {
  TensorPlan plan;
  for (const auto& entry : config.plan) {
    if (!plan.emplace(entry.layers, entry.style).second) {
      throw ConfigError("plan: has \"" + entry.layers + "\" twice");
    }
  }
  if (plan.empty()) plan = model.tensor_plan();
  if (!plan.empty()) return plan;
  throw ConfigError(
      "mesh.tensor: model " + config.model.selected() +
      " has no plan of its own by which its layers could be divided; set plan, or leave mesh.tensor at 1");
}

}  // namespace

// LibTorch draws initial values from one generator per process, and ranks may be threads.
std::shared_ptr<Model> make_model(const ExperimentConfig& config, const ModelSpec& spec) {
  static std::mutex generator;
  std::lock_guard lock(generator);
  at::manual_seed(mix(static_cast<std::uint64_t>(config.seed), 0));
  auto model = make_section("model", config.model, spec);
  const auto& lora = config.lora;
  if (lora.any()) add_adapters(*model, {lora.layers, lora.rank, lora.alpha, lora.dropout});
  if (config.train.precision == "fp64") weights_to_double(*model);
  if (config.train.memory_format == "channels_last") weights_to_channels_last(*model);
  return model;
}

// A run that goes on from a checkpoint that it names has all its values from there. One that looks for a checkpoint may
// find none.
std::shared_ptr<Model> Replica::make_initial_model(const ModelSpec& spec) const {
  auto model = make_model(config_, spec);
  InitConfig init = config_.init;
  const auto& resume = config_.checkpoint.resume;
  if (resume != "none" && resume != "auto") init.from.clear();
  const std::string left_over = load_initial_weights(init, config_.lora, *model);
  if (init.from.empty() || mesh_.world()->rank() != 0) return model;
  const std::string text =
      "Begins with the weights in " + init.from + (left_over.empty() ? "" : ", which leaves: " + left_over);
  log_info() << text;
  if (config_.watch.progress && !left_over.empty()) standard_output().write(text + "\n");
  return model;
}

// Of another thread: with the first one's frozen parameters. What is trained becomes a view of the first one's.
std::shared_ptr<Model> Replica::make_other_model(const ModelSpec& spec) const {
  auto model = make_model(config_, spec);
  const NamedTensors frozen = frozen_parameters(*model_);
  const std::map<std::string, at::Tensor> by_name(frozen.begin(), frozen.end());
  for (auto& [name, parameter] : model->named_parameters()) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) continue;
    parameter.set_requires_grad(false);
    parameter.set_data(found->second);
  }
  return model;
}

Replica::Replica(const ExperimentConfig& config, Task& task, const Mesh& mesh, const ExperimentContext& context,
                 Watching& watching)
    : config_(config),
      mesh_(mesh),
      model_(make_initial_model(task.model())),
      placements_(divide_model(task.model())),
      pipeline_(divide_into_stages(task)),
      agreement_(choose_agreement(config, context.folder, bytes_of(*model_), mesh)),
      turns_(config, task, *model_),
      device_(moved_to(context.device)),
      parameters_(updated_here(), *mesh.replicas(), agreement_.bucket_bytes, bucket_groups()),
      groups_(replica_groups(mesh, parameters_, [this](const std::string& name) { return experts_.contains(name); })),
      synchronizer_(make_synchronizer(context)),
      update_(
          config, make_optimizer(), *synchronizer_, mesh, placements_, experts_,
          [this](const std::string& name) { return pipeline_ ? pipeline_->updaters(name) : 1; }, watching, device_),
      step_(setup_of_step(task, watching)) {
  if (BlockRunner runner = synchronizer_->run_blocks(model_->blocks())) model_->run_blocks_by(std::move(runner));
}

Placements Replica::divide_model(const ModelSpec& spec) {
  const auto& tensor = mesh_.along(Axis::kTensor);
  Placements all;
  if (tensor->size() > 1) all = model_->divide(plan_of(config_, *model_), tensor);
  if (config_.mesh.sequence_parallel) share_positions(spec);
  Placements experts = model_->divide_experts(mesh_.along(Axis::kExpert), mesh_.batch());
  if (experts.empty() && config_.mesh.expert > 1) {
    throw ConfigError("mesh.expert: model " + config_.model.selected() +
                      " has no experts; use one that has, such as moe_gpt, or leave mesh.expert at 1");
  }
  for (const auto& [name, placement] : experts) experts_.insert(name);
  all.merge(experts);
  divide_sequence();
  return all;
}

void Replica::share_positions(const ModelSpec& spec) {
  if (!model_->share_positions(mesh_.along(Axis::kTensor))) {
    throw ConfigError("mesh.sequence_parallel: model " + config_.model.selected() +
                      " has no positions that ranks could divide between its layers; use one that has, such as gpt, or "
                      "leave it out");
  }
  if (config_.mesh.async_tensor) model_->overlap_exchange();
  const auto& mesh = config_.mesh;
  const auto length = spec.inputs.front().shape.front(), parts = mesh.tensor * mesh.context;
  if (length % parts == 0) return;
  throw ConfigError("mesh.sequence_parallel: samples have " + std::to_string(length) +
                    " positions, which mesh.tensor: " + std::to_string(mesh.tensor) +
                    (mesh.context > 1 ? " times mesh.context: " + std::to_string(mesh.context) : "") +
                    " ranks cannot divide equally; use samples of " + std::to_string((length / parts + 1) * parts) +
                    " positions, or leave it out");
}

void Replica::divide_sequence() {
  if (config_.mesh.context == 1) return;
  try {
    if (model_->divide_sequence(mesh_.along(Axis::kContext))) return;
  } catch (const ConfigError& error) {
    throw ConfigError("mesh.context: model " + config_.model.selected() + ": " + error.what());
  }
  throw ConfigError("mesh.context: model " + config_.model.selected() +
                    " cannot compute a part of a sequence; use one that can, such as gpt, or leave mesh.context at 1");
}

std::optional<Pipeline> Replica::divide_into_stages(const Task& task) {
  if (config_.mesh.pipe == 1) return std::nullopt;
  return Pipeline(config_, *model_, task, mesh_, arithmetic_of(config_.train, task.model()));
}

// Whole, and divided, on the CPU: a device need not have room for what other ranks keep.
c10::Device Replica::moved_to(c10::Device device) const {
  if (!device.is_cpu()) move_weights(*model_, device);
  return device;
}

// Buckets hold the parameters of experts or others, so that those of blocks by turns would be many.
NamedTensors Replica::updated_here() const {
  NamedTensors parameters = trained_parameters(*model_);
  if (pipeline_) std::erase_if(parameters, [this](const auto& named) { return !pipeline_->updates(named.first); });
  std::ranges::stable_partition(parameters, [this](const auto& named) { return !experts_.contains(named.first); });
  return parameters;
}

// Buckets of a strategy that has values only where a block needs them are of one block each; parameters of several
// blocks, and those of none, are in others.
FlatParameters::GroupOf Replica::bucket_groups() const {
  if (!agreement_.strategy.traits().shards_values) {
    return [this](const std::string& name) { return 2 * turns_.of(name) + experts_.count(name); };
  }
  const auto& blocks = model_->blocks();
  if (blocks.empty()) {
    throw ConfigError("strategy.stage: 3 gathers the parameters of one block of the model after the other, and model " +
                      config_.model.selected() +
                      " is no chain of blocks, as gpt, mlp, lenet and resnet18 are; use stage: 2");
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
    return 2 * (found == block_of.end() ? none : found->second) + experts_.count(name);
  };
}

std::vector<ReplicaGroup> Replica::groups() const {
  return agreement_.strategy.traits().shards_values ? std::vector<ReplicaGroup>{} : groups_;
}

std::vector<Pipeline::Whole> Replica::whole_parameters() const {
  return pipeline_ ? pipeline_->parameters() : Pipeline::described(model_->named_parameters());
}

std::int64_t Replica::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : whole_parameters()) {
    const auto found = placements_.find(parameter.name);
    count += c10::multiply_integers(found == placements_.end() ? parameter.shape : found->second.shape);
  }
  return count;
}

// On the first of the ranks `parts`, which have the parts of one replica. A sum of zeros, and each element of one rank.
at::Tensor Replica::whole_tensor(const Pipeline::Whole& tensor, const CommunicatorPtr& parts) const {
  const bool expert = experts_.contains(tensor.name);
  const auto found = placements_.find(tensor.name);
  const bool divided = found != placements_.end();
  bool mine = !pipeline_ || pipeline_->first_holder(tensor.name);
  mine &= (divided && !expert) || mesh_.position(Axis::kTensor) == 0;
  mine &= expert || mesh_.position(Axis::kExpert) == 0;
  at::Tensor own;
  if (mine) {
    for (const auto& named : {model_->named_parameters(), model_->named_buffers()}) {
      for (const auto& [name, values] : named) own = name == tensor.name ? values : own;
    }
  }
  at::Tensor all = at::zeros(divided ? found->second.shape : tensor.shape, at::TensorOptions().dtype(tensor.dtype));
  if (mine && divided) {
    found->second.put(all, own.to(at::kCPU));
  } else if (mine) {
    all.copy_(own);
  }
  parts->reduce(all, Reduction::kSum, 0).wait();
  return all;
}

NamedTensors Replica::whole_weights(bool wanted) const {
  NamedTensors weights;
  synchronizer_->with_values([&] {
    weights = gathered_weights(wanted);
    if (!agreement_.strategy.traits().shards_values) return;
    for (auto& [name, tensor] : weights) tensor = tensor.detach().clone();
  });
  return weights;
}

NamedTensors Replica::gathered_weights(bool wanted) const {
  NamedTensors weights;
  constexpr AxisSet kParts{Axis::kPipe, Axis::kTensor, Axis::kExpert};
  const auto& parts = mesh_.group(kParts);  // all ranks make it
  if (!wanted || mesh_.position(Axis::kData) != 0 || mesh_.position(Axis::kContext) != 0) return weights;
  const at::NoGradGuard no_grad;
  const bool first = mesh_.world()->rank() == 0;
  const NamedTensors own = model_->named_parameters();
  const std::map<std::string, at::Tensor> by_name(own.begin(), own.end());
  for (const auto& parameter : whole_parameters()) {
    const bool divided = pipeline_ || placements_.contains(parameter.name);
    at::Tensor values = divided ? whole_tensor(parameter, parts) : by_name.at(parameter.name);
    if (first) weights.emplace_back(parameter.name, std::move(values));
  }
  for (const auto& buffer : pipeline_ ? pipeline_->buffers() : std::vector<Pipeline::Whole>()) {
    at::Tensor values = whole_tensor(buffer, parts);
    if (first) weights.emplace_back(buffer.name, std::move(values));
  }
  if (first && !pipeline_) std::ranges::move(model_->named_buffers(), std::back_inserter(weights));
  return weights;
}

std::set<std::string> Replica::elsewhere() const {
  std::set<std::string> names;
  if (!pipeline_) return names;
  for (const auto* tensors : {&pipeline_->parameters(), &pipeline_->buffers()}) {
    for (const auto& tensor : *tensors) names.insert(tensor.name);
  }
  for (const auto& [name, parameter] : model_->named_parameters()) {
    if (pipeline_->updates(name)) names.erase(name);
  }
  for (const auto& [name, buffer] : model_->named_buffers()) names.erase(name);
  return names;
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

// Gradients of replicas in threads, and of parameters that several ranks of a pipeline have, come together after the
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

std::unique_ptr<Optimizer> Replica::make_optimizer() const {
  auto elsewhere = synchronizer_->make_optimizer();
  if (!elsewhere) {
    auto optimizer = turns_.make_optimizer();
    if (!placements_.empty()) gather_parts(*optimizer);
    return optimizer;
  }
  if (!turns_.any()) return elsewhere;
  throw ConfigError("strategy: servers that update the parameters take no turns; let the ranks update them");
}

// Optimizers that look at whole parameters would look at parts.
void Replica::gather_parts(Optimizer& optimizer) const {
  constexpr AxisSet kPartsAndReplicas{Axis::kData, Axis::kTensor, Axis::kExpert, Axis::kContext};
  const auto& group = mesh_.group(kPartsAndReplicas);  // all ranks make it
  if (optimizer.cut() == Cut::kAnywhere) return;
  if (auto* const gathers = dynamic_cast<GathersMatrices*>(&optimizer)) {
    const auto dtype = parameters_.buckets().at(0).values.scalar_type();
    return gathers->gather_by(std::make_unique<MatrixExchange>(group, placements_, dtype));
  }
  throw ConfigError(std::string("mesh.") + (mesh_.along(Axis::kTensor)->size() > 1 ? "tensor" : "expert") +
                    ": optimizer " + config_.optimizer.selected() +
                    " looks at whole parameters, of which ranks have parts; use muon, which gathers them unless a task "
                    "trains in turns, or one that looks at elements, such as adamw");
}

// A recorded step is replayed without what the host does beside it.
void Replica::refuse_to_record_messages() const {
  const auto& traits = agreement_.strategy.traits();
  if (!config_.train.capture || !(traits.overlaps_backward || traits.frees_gradients || traits.shards_values)) return;
  throw ConfigError("strategy: " + agreement_.strategy.selected() +
                    " communicates within forward or backward, which train.capture replays without it; use all_reduce, "
                    "which does so afterwards");
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
          .make_replica = [this, &task] { return make_other_model(task.model()); },
          .bucket_bytes = agreement_.bucket_bytes,
          .invariant = invariant_,
          .after_backward = agreement_.strategy.traits().frees_gradients
                                ? std::function<void()>([this] { synchronizer_->after_backward(); })
                                : nullptr,
          .pipeline = pipeline_ ? &*pipeline_ : nullptr,
          .seed = mix(static_cast<std::uint64_t>(config_.seed), 1),
          .device = device_};
}

void Replica::broadcast_buffers() {
  for (auto& buffer : model_->buffers()) mesh_.replicas()->broadcast(buffer, 0).wait();
}

// With an invariant strategy they are equal, to the bit.
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
  step_.lend_parameters();  // that are no averages any more
}

}  // namespace phalanx
