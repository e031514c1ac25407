// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/pipeline.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/profiler/util.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "engine/experiment/zero_inputs.h"
#include "engine/step/computation.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/peerless.h"
#include "framework/parallel/autocast.h"
#include "models/has_experts.h"
#include "models/trained.h"

namespace phalanx {
namespace {

// Counts the operations of matrix products and convolutions that this thread calls during the counter's lifetime. The
// count follows from shapes, so it is the same in every run, unlike measured times.
class FlopCount {
 public:
  FlopCount()
      : outer_(current),
        handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(begin).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
    current = this;
  }
  ~FlopCount() {
    at::removeCallback(handle_);
    current = outer_;
  }
  FlopCount(const FlopCount&) = delete;
  FlopCount& operator=(const FlopCount&) = delete;

  double count() const { return count_; }

 private:
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    const auto arguments = torch::profiler::impl::saveExtraArgs(function);
    current->count_ += static_cast<double>(torch::profiler::impl::computeFlops(function.name(), arguments));
    return nullptr;
  }

  static thread_local FlopCount* current;

  FlopCount* outer_;
  double count_ = 0;
  at::CallbackHandle handle_;
};

thread_local FlopCount* FlopCount::current = nullptr;

RowSpec row_of(const at::Tensor& tensor) { return {tensor.sizes().slice(1).vec(), tensor.scalar_type()}; }

std::string names_of(const std::vector<BlockCost>& blocks) {
  std::vector<std::string> names;
  for (const auto& block : blocks) names.push_back(block.name);
  return join(names, ", ");
}

// Returns the number of micro-batches: about four for each rank, but not more than there are samples.
int micro_batches(const ExperimentConfig& config, const Mesh& mesh) {
  const auto& wanted = config.pipeline.micro_batches;
  if (wanted > 0) return static_cast<int>(wanted);
  const std::int64_t ranks = mesh.shape()[Axis::kPipe];
  const std::int64_t share = config.train.global_batch_size / mesh.samples()->size();
  return static_cast<int>(std::max(ranks, std::min(4 * ranks, share / ranks * ranks)));
}

}  // namespace

std::vector<std::size_t> cut_evenly(const std::vector<BlockCost>& blocks, std::size_t stages) {
  const std::size_t count = blocks.size();
  std::vector<double> before(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) before[i + 1] = before[i] + blocks[i].cost;
  // best[s][i]: the largest cost of a stage if the first i blocks are divided into s stages. from[s][i]: the first
  // block of the last of these stages.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(count + 1, kNone));
  std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(count + 1, 0));
  best[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s) {
    for (std::size_t i = s; i <= count; ++i) {
      for (std::size_t j = s - 1; j < i; ++j) {
        const double largest = std::max(best[s - 1][j], before[i] - before[j]);
        if (largest >= best[s][i]) continue;
        best[s][i] = largest;
        from[s][i] = j;
      }
    }
  }
  std::vector<std::size_t> begins{count};
  for (std::size_t s = stages; s > 0; --s) begins.insert(begins.begin(), from[s][begins.front()]);
  return begins;
}

std::vector<std::size_t> cut_at(const std::vector<BlockCost>& blocks, const std::vector<std::string>& names,
                                std::size_t stages) {
  if (names.size() + 1 != stages) {
    throw ConfigError(
        "pipeline.cut: names the first blocks of " + std::to_string(names.size()) +
        " stages, but the number of stages after the first is " + std::to_string(stages - 1) +
        " (mesh.pipe times pipeline.stages_per_rank, minus one); leave it empty for stages of equal cost");
  }
  std::vector<std::size_t> begins{0};
  for (const auto& name : names) {
    const auto found = std::ranges::find(blocks, name, &BlockCost::name);
    if (found == blocks.end()) {
      throw ConfigError("pipeline.cut: \"" + name + "\" is not a block of the model; its blocks are " +
                        names_of(blocks));
    }
    const auto index = static_cast<std::size_t>(found - blocks.begin());
    if (index <= begins.back()) {
      throw ConfigError("pipeline.cut: \"" + name + "\" leaves the stage before it without blocks; name " +
                        std::to_string(stages - 1) + " blocks in the order of " + names_of(blocks) +
                        ", without the first of them");
    }
    begins.push_back(index);
  }
  begins.push_back(blocks.size());
  return begins;
}

Pipeline::Pipeline(const ExperimentConfig& config, Model& model, const Task& task, const Mesh& mesh,
                   Arithmetic arithmetic)
    : rank_(mesh.along(Axis::kPipe)->rank()),
      lends_(config.strategy.traits().parameter_servers),
      parameters_(described(model.named_parameters())),
      buffers_(described(model.named_buffers())) {
  const auto& wanted = config.pipeline;
  const std::string what = "mesh.pipe: model " + config.model.selected();
  if (model.blocks().empty()) {
    throw ConfigError(what +
                      " is not a chain of blocks, so it cannot be divided into stages; use one that is, such as gpt,"
                      " mlp, lenet or resnet18, or leave mesh.pipe at 1");
  }
  if (!task.turns().empty()) {
    throw ConfigError("mesh.pipe: a task that trains in turns cannot be divided into stages; leave mesh.pipe at 1");
  }
  try {
    auto options = wanted.options(config.mesh.pipe, micro_batches(config, mesh));
    options.costs = kStepCosts;
    schedule_ = pipeline::make_schedule(wanted.schedule, options);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("pipeline.") + error.what());
  }
  const auto stages = static_cast<std::size_t>(schedule_.stages);
  for (const auto& block : model.blocks()) blocks_.push_back({.name = block.name});
  if (blocks_.size() < stages) {
    throw ConfigError(what + " has " + std::to_string(blocks_.size()) + " blocks (" + names_of(blocks_) + "), but " +
                      std::to_string(stages) + " stages need one each; use fewer ranks, or a model with more layers");
  }
  has_experts_ = has_experts(model);
  const std::string counted = counts_over_batch(model);
  if (!counted.empty() && schedule_.micro_batches > 1) {
    throw ConfigError("pipeline.micro_batches: " + std::to_string(schedule_.micro_batches) + " " +
                      refusal_of_parts(config.model.selected(), counted) + ", or pipeline.micro_batches: 1");
  }
  measure(model, task, mesh, std::move(arithmetic));
  begins_ = wanted.cut.empty() ? cut_evenly(blocks_, stages) : cut_at(blocks_, wanted.cut, stages);
  find_holders(model);
  check_updates(model);
  model.keep_blocks(blocks_of(rank_));
  share(model, mesh);
  std::string stages_text;
  for (std::size_t s = 0; s < stages; ++s) {
    stages_text +=
        (s == 0 ? "" : ", ") + blocks_[begins_[s]].name + " (" + std::to_string(begins_[s + 1] - begins_[s]) + ")";
  }
  log_info() << "pipeline: " << schedule_.name << ", " << schedule_.micro_batches
             << " micro-batches, stages from these blocks on (number of blocks): " << stages_text;
}

std::vector<Pipeline::Whole> Pipeline::described(const NamedTensors& tensors) {
  std::vector<Whole> all;
  for (const auto& [name, tensor] : tensors) all.push_back({name, tensor.sizes().vec(), tensor.scalar_type()});
  return all;
}

// Measures the blocks with an input of zeros in evaluation mode, so that buffers and random numbers do not change. If
// the positions are divided between ranks, the input has the positions of this rank.
void Pipeline::measure(Model& model, const Task& task, const Mesh& mesh, Arithmetic arithmetic) {
  const at::NoGradGuard no_grad;
  const Computation computation(task, std::move(arithmetic), nullptr, nullptr);
  at::Tensor x = computation.inputs({.inputs = zero_inputs(task, mesh), .valid = 1, .global_rows = 1}).at(0);
  const Autocast autocast(x.device().type(), computation.autocast());
  model.eval();
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [name, parameter] : model.named_parameters()) sizes[name] = parameter.numel();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto& block = model.blocks()[i];
    const FlopCount operations;
    x = block.forward(x);
    blocks_[i].cost = operations.count();
    for (const auto& name : block.parameters) blocks_[i].cost += static_cast<double>(sizes.at(name));
    given_.push_back(row_of(x));
  }
  for (const auto& prediction : computation.predictions({x})) predictions_.push_back(row_of(prediction));
  agree_on_costs(*mesh.control());
}

// Sums the costs over all ranks, because all must cut the model at the same places. Ranks that divide a layer may have
// parts of different cost, for example if one of them has the bias.
void Pipeline::agree_on_costs(Communicator& ranks) {
  const at::Tensor costs = at::empty({std::ssize(blocks_)}, at::kDouble);
  auto* const values = costs.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < blocks_.size(); ++i) values[i] = blocks_[i].cost;
  ranks.all_reduce(costs, Reduction::kSum).wait();
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].cost = values[i];
}

void Pipeline::find_holders(const Model& model) {
  std::map<std::string, std::set<int>> having;
  for (int rank = 0; rank < schedule_.ranks; ++rank) {
    for (const auto index : blocks_of(rank)) {
      const auto& block = model.blocks()[index];
      for (const auto& name : block.parameters) having[name].insert(rank);
      for (const auto& name : block.buffers) having[name].insert(rank);
    }
  }
  for (const auto& [name, ranks] : having) holders_[name] = {ranks.begin(), ranks.end()};
  for (const auto* tensors : {&parameters_, &buffers_}) {
    for (const auto& tensor : *tensors) {
      if (!holders_.contains(tensor.name)) throw Error("the model's " + tensor.name + " is in none of its blocks");
    }
  }
  for (const auto& buffer : buffers_) {
    if (holders(buffer.name) == 1) continue;
    throw ConfigError("pipeline.schedule: " + schedule_.name + " has the stage with the running statistics " +
                      buffer.name + " on two ranks, each of which would see half of the micro-batches; use 1f1b");
  }
}

// Refuses a division in which a rank has nothing to update: it would not take part in operations of the other ranks.
void Pipeline::check_updates(const Model& model) const {
  std::set<int> training, updating;
  for (const auto& [name, parameter] : trained_parameters(model)) {
    const auto& ranks = holders_.at(name);
    training.insert(ranks.begin(), ranks.end());
    updating.insert(ranks.begin(), lends_ ? ranks.begin() + 1 : ranks.end());
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
void Pipeline::share(const Model& model, const Mesh& mesh) {
  std::map<std::vector<int>, std::vector<std::string>> names;
  for (const auto& parameter : parameters_) {
    const auto& ranks = holders_.at(parameter.name);
    if (ranks.size() > 1) names[ranks].push_back(parameter.name);
  }
  const NamedTensors own = model.named_parameters();
  const std::map<std::string, at::Tensor> by_name(own.begin(), own.end());
  for (const auto& [ranks, of] : names) {
    SharedParameters::Group shared{.ranks = group_of(*mesh.along(Axis::kPipe), ranks), .parameters = {}};
    if (!shared.ranks) continue;
    for (const auto& name : of) {
      if (by_name.at(name).requires_grad()) shared.parameters.push_back(by_name.at(name));
    }
    shared_.push_back(std::move(shared));
  }
}

PipelineStep::Setup Pipeline::setup(Model& model, const Task& task, const Mesh& mesh) const {
  std::vector<RowSpec> inputs;
  for (std::size_t s = 0; s + 1 < begins_.size(); ++s) inputs.push_back(s == 0 ? RowSpec() : given_[begins_[s] - 1]);
  using Updates = SharedParameters::Updates;
  const bool divided = mesh.world()->size() > mesh.shape()[Axis::kPipe] * mesh.data()->size();
  // The strategies of two stages may have the same parameter at different places of their buckets, and so round or
  // compress it differently.
  const auto updates = lends_ ? Updates::kOnce : mesh.replicas()->size() > 1 ? Updates::kNearly : Updates::kAlike;
  return {.model = model,
          .task = task,
          .schedule = schedule_,
          .begins = begins_,
          .inputs = std::move(inputs),
          .predictions = predictions_,
          .pipe = mesh.along(Axis::kPipe),
          .control = mesh.control({Axis::kPipe}),
          .communicates = divided || (has_experts_ && mesh.batch()->size() > 1),
          .shared = SharedParameters(shared_, updates)};
}

}  // namespace phalanx
