// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/config/experiment_config.h"
#include "engine/optim/group_table.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/turns.h"
#include "engine/task/task.h"
#include "models/model.h"

namespace phalanx {

/// The turns in which a task trains its parameters (Task::turns()), and their optimizers. A task without turns has one
/// turn with all parameters.
class TrainingTurns {
 public:
  /// `config` must outlive the object. Throws ConfigError if it names a turn that the task does not have or settings
  /// that cannot be combined with turns, and if a parameter is in no turn.
  TrainingTurns(const ExperimentConfig& config, const Task& task, const Model& model);

  bool any() const { return !turns_.empty(); }

  /// Returns the turn of a parameter. Buckets hold the parameters of one turn.
  std::size_t of(const std::string& parameter) const { return any() ? table_.of(parameter) : 0; }

  /// Returns the parameters of each turn.
  std::vector<std::vector<at::Tensor>> parameters(const Model& model) const;

  /// Returns the config's optimizer or, if there are turns, one that combines an optimizer for each turn. A turn uses
  /// its section in `turns`, or the config's optimizer if it has no section.
  std::unique_ptr<Optimizer> make_optimizer();

  /// Returns a part of checkpoints with the number of updates of each turn, which differ if loss scaling skips some of
  /// them. Returns no part if there are no turns. Must be called after make_optimizer(), whose optimizer must outlive
  /// the part.
  std::vector<CheckpointPart> parts();

  /// Returns the current turn, which the step sets and the optimizer reads.
  std::size_t& current() { return *current_; }

 private:
  const ExperimentConfig& config_;
  std::vector<Task::Turn> turns_;
  GroupTable table_;
  TurnOptimizer* optimizer_ = nullptr;  // made by make_optimizer(); null: there is one turn
  std::shared_ptr<std::size_t> current_ = std::make_shared<std::size_t>(0);
};

}  // namespace phalanx
