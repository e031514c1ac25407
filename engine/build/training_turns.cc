// SPDX-License-Identifier: Apache-2.0
#include "engine/build/training_turns.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/checkpoint/numbers_part.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

ParameterGroups groups_of(const std::vector<Task::Turn>& turns) {
  ParameterGroups groups;
  for (const auto& turn : turns) groups.push_back({.match = turn.parameters});
  return groups;
}

}  // namespace

TrainingTurns::TrainingTurns(const ExperimentConfig& config, const Task& task, const Model& model)
    : config_(config), turns_(task.turns()), table_(groups_of(turns_)) {
  for (const auto& [name, turn] : config.turns) {
    if (std::ranges::count(turns_, name, &Task::Turn::name) > 0) continue;
    std::vector<std::string> names;
    for (const auto& one : turns_) names.push_back(one.name);
    throw ConfigError("turns." + name + ": the task " +
                      (names.empty() ? "has no turns" : "has no such turn; its turns are: " + join(names, ", ")));
  }
  if (!any()) return;
  if (config.determinism == "world_size_invariant") {
    throw ConfigError("determinism: world_size_invariant cannot be combined with a task that trains in turns");
  }
  if (config.train.data_parallel > 1) {
    throw ConfigError("train.data_parallel: cannot be combined with a task that trains in turns; use ranks instead");
  }
  // Strategy `levels` compresses slices between hosts. A slice belongs to no parameter, and thus to no turn.
  const auto traits = config.strategy.traits();
  if (traits.remembers_gradients && traits.reduces_gradients && !traits.intra_level) {
    throw ConfigError("strategy: " + config.strategy.selected() +
                      " with compression cannot be combined with a task that trains in turns; leave out the "
                      "compression, or use all_reduce, overlapped or sharded");
  }
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (table_.of(name) == turns_.size()) throw ConfigError("parameter " + name + " is in none of the task's turns");
  }
}

std::vector<std::vector<at::Tensor>> TrainingTurns::parameters(const Model& model) const {
  std::vector<std::vector<at::Tensor>> all(std::max<std::size_t>(turns_.size(), 1));
  for (const auto& [name, parameter] : trainable_parameters(model)) all[of(name)].push_back(parameter);
  return all;
}

std::unique_ptr<Optimizer> TrainingTurns::make_optimizer() {
  if (!any()) return config_.optimizer.make(config_.parameter_groups);
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (const auto& turn : turns_) {
    const auto own = config_.turns.find(turn.name);
    const auto& choice = own == config_.turns.end() ? config_.optimizer : own->second.optimizer;
    optimizers.push_back(choice.make(config_.parameter_groups));
  }
  auto all = std::make_unique<TurnOptimizer>(
      std::move(optimizers), [this](const std::string& parameter) { return of(parameter); }, *current_);
  optimizer_ = all.get();
  return all;
}

// If a checkpoint lacks the part, the optimizer derives the updates of each turn from the sum over all turns.
std::vector<CheckpointPart> TrainingTurns::parts() {
  if (optimizer_ == nullptr) return {};
  return {numbers_part(
      "turns",
      [this] {
        const auto updates = optimizer_->updates_by_turn();
        return std::vector<double>(updates.begin(), updates.end());
      },
      [this](const std::vector<double>& updates) {
        if (!updates.empty()) optimizer_->set_updates_by_turn({updates.begin(), updates.end()});
      })};
}

}  // namespace phalanx
