// SPDX-License-Identifier: Apache-2.0
#include "engine/build/pipeline.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/mesh/fake_communicator.h"
#include "models/block_chain.h"
#include "models/expert_parallel.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

// Returns the number of micro-batches: about four for each rank, but not more than there are samples. `batch`: the
// samples of a step.
int micro_batches(const ExperimentConfig& config, const Mesh& mesh, std::int64_t batch) {
  const auto& wanted = config.pipeline.micro_batches;
  if (wanted > 0) return static_cast<int>(wanted);
  const std::int64_t ranks = mesh.shape()[Axis::kPipe];
  const std::int64_t share = batch / mesh.samples()->size();
  return static_cast<int>(std::max(ranks, std::min(4 * ranks, share / ranks * ranks)));
}

pipeline::Schedule schedule_of(const ExperimentConfig& config, const Mesh& mesh, std::int64_t batch) {
  try {
    auto options = config.pipeline.options(config.mesh.pipe, micro_batches(config, mesh, batch));
    options.costs = kStepCosts;
    return pipeline::make_schedule(config.pipeline.schedule, options);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("pipeline.") + error.what());
  }
}

void refuse_whole(const ExperimentConfig& config, const Model& model, const Task& task) {
  if (as<BlockChain>(model) == nullptr) {
    throw ConfigError("mesh.pipe: model " + config.model.selected() +
                      " is not a chain of blocks, so it cannot be divided into stages; use one that is (" +
                      models_with(&ModelTraits::block_chain) + "), or leave mesh.pipe at 1");
  }
  if (!task.turns().empty()) {
    throw ConfigError("mesh.pipe: a task that trains in turns cannot be divided into stages; leave mesh.pipe at 1");
  }
}

void refuse_schedule(const ExperimentConfig& config, const Model& model, const pipeline::Schedule& schedule) {
  std::vector<std::string> names;
  for (const auto& block : as<BlockChain>(model)->blocks()) names.push_back(block.name);
  if (std::ssize(names) < schedule.stages) {
    throw ConfigError("mesh.pipe: model " + config.model.selected() + " has " + std::to_string(names.size()) +
                      " blocks (" + join(names, ", ") + "), but " + std::to_string(schedule.stages) +
                      " stages need one each; use fewer ranks, or a model with more layers");
  }
  const auto* const experts = as<ExpertParallel>(model);
  const std::string counted = experts == nullptr ? "" : experts->counts_over_batch();
  if (counted.empty() || schedule.micro_batches == 1) return;
  throw ConfigError("pipeline.micro_batches: " + std::to_string(schedule.micro_batches) + " " +
                    refusal_of_parts(config.model.selected(), counted) + ", or pipeline.micro_batches: 1");
}

}  // namespace

Pipeline::Pipeline(const ExperimentConfig& config, Model& model, const Task& task, const Mesh& mesh,
                   Arithmetic arithmetic, std::int64_t batch)
    : rank_(mesh.along(Axis::kPipe)->rank()),
      owner_updates_(config.strategy.traits().parameter_servers),
      has_experts_(as<ExpertParallel>(model) != nullptr) {
  refuse_whole(config, model, task);
  schedule_ = schedule_of(config, mesh, batch);
  refuse_schedule(config, model, schedule_);
  blocks_ = measure_blocks(model, task, mesh, std::move(arithmetic));
  const auto stages = static_cast<std::size_t>(schedule_.stages);
  const auto& first_blocks = config.pipeline.cut;
  begins_ = first_blocks.empty() ? cut_evenly(blocks_.costs, stages) : cut_at(blocks_.costs, first_blocks, stages);
  std::vector<std::vector<std::size_t>> blocks_of_ranks;
  for (int rank = 0; rank < schedule_.ranks; ++rank) blocks_of_ranks.push_back(blocks_of(rank));
  holders_ = TensorHolders(model, blocks_of_ranks);
  refuse_shared_statistics();
  check_updates(model);
  as<BlockChain>(model)->keep_blocks(blocks_of(rank_));
  shared_ = share(model, mesh);
  log_info() << "pipeline: " << schedule_.name << ", " << schedule_.micro_batches
             << " micro-batches, stages from these blocks on (number of blocks): " << describe_stages();
}

std::string Pipeline::describe_stages() const {
  std::vector<std::string> stages;
  for (std::size_t s = 0; s + 1 < begins_.size(); ++s) {
    stages.push_back(blocks_.costs[begins_[s]].name + " (" + std::to_string(begins_[s + 1] - begins_[s]) + ")");
  }
  return join(stages, ", ");
}

void Pipeline::refuse_shared_statistics() const {
  for (const auto& buffer : buffers()) {
    if (holders(buffer.name) == 1) continue;
    throw ConfigError("pipeline.schedule: " + schedule_.name + " has the stage with the running statistics " +
                      buffer.name + " on two ranks, each of which would see half of the micro-batches; use 1f1b");
  }
}

// Refuses a division in which a rank has nothing to update: it would not take part in operations of the other ranks.
void Pipeline::check_updates(const Model& model) const {
  std::set<int> training, updating;
  for (const auto& [name, parameter] : trainable_parameters(model)) {
    const auto& ranks = holders_.ranks(name);
    training.insert(ranks.begin(), ranks.end());
    updating.insert(ranks.begin(), owner_updates_ ? ranks.begin() + 1 : ranks.end());
  }
  for (int rank = 0; rank < schedule_.ranks; ++rank) {
    const std::string whose = "rank " + std::to_string(rank) + " of the pipeline";
    if (!training.contains(rank)) {
      throw ConfigError("mesh.pipe: the stages of " + whose +
                        " have no parameters to train; set pipeline.cut, or use fewer ranks");
    }
    if (updating.contains(rank)) continue;
    throw ConfigError("mesh.pipe: parameter servers have each parameter once, and all parameters of " + whose +
                      " also belong to an earlier rank, which updates them; with pipeline.schedule: " + schedule_.name +
                      " use another strategy, or another schedule, such as 1f1b");
  }
}

std::vector<std::size_t> Pipeline::blocks_of(int rank) const {
  std::vector<std::size_t> blocks;
  for (const int stage : schedule_.stages_of(rank)) {
    for (auto i = begins_[static_cast<std::size_t>(stage)]; i < begins_[static_cast<std::size_t>(stage) + 1]; ++i) {
      blocks.push_back(i);
    }
  }
  return blocks;
}

// Makes one group for each set of ranks that have the same parameters.
std::vector<SharedParameters::Group> Pipeline::share(const Model& model, const Mesh& mesh) const {
  std::map<std::vector<int>, std::vector<std::string>> names;
  for (const auto& parameter : parameters()) {
    const auto& ranks = holders_.ranks(parameter.name);
    if (ranks.size() > 1) names[ranks].push_back(parameter.name);
  }
  const NamedTensors own = model.named_parameters();
  const std::map<std::string, at::Tensor> by_name(own.begin(), own.end());
  std::vector<SharedParameters::Group> groups;
  for (const auto& [ranks, of] : names) {
    SharedParameters::Group shared{.ranks = group_of(*mesh.along(Axis::kPipe), ranks), .parameters = {}};
    if (!shared.ranks) continue;
    for (const auto& name : of) {
      if (by_name.at(name).requires_grad()) shared.parameters.push_back(by_name.at(name));
    }
    groups.push_back(std::move(shared));
  }
  return groups;
}

PipelineStep::Setup Pipeline::setup(Model& model, const Task& task, const Mesh& mesh) const {
  std::vector<RowSpec> inputs;
  for (std::size_t s = 0; s + 1 < begins_.size(); ++s)
    inputs.push_back(s == 0 ? RowSpec() : blocks_.outputs[begins_[s] - 1]);
  const bool sharded = mesh.world()->size() > mesh.shape()[Axis::kPipe] * mesh.data()->size();
  return {.model = model,
          .task = task,
          .schedule = schedule_,
          .begins = begins_,
          .inputs = std::move(inputs),
          .predictions = blocks_.predictions,
          .pipe = mesh.along(Axis::kPipe),
          .control = mesh.control({Axis::kPipe}),
          .communicates = sharded || (has_experts_ && mesh.batch()->size() > 1)};
}

// The strategies of two stages may have the same parameter at different places of their buckets, and so round or
// compress it differently.
std::shared_ptr<SharedParameters> Pipeline::shared_parameters(const Mesh& mesh) const {
  using Updates = SharedParameters::Updates;
  const auto replicated = mesh.replicas()->size() > 1 ? Updates::kReplicatedWithResync : Updates::kReplicated;
  return std::make_shared<SharedParameters>(shared_, owner_updates_ ? Updates::kOwnerWithSummedGradients : replicated);
}

}  // namespace phalanx
