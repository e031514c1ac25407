// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/experiment/config.h"
#include "engine/optim/group_table.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/turns.h"
#include "engine/task/task.h"
#include "models/model.h"

namespace phalanx {

/// Which parameters a task trains when (Task::turns()), and with which optimizers. A task without turns has one turn of
/// all parameters.
class TrainingTurns {
 public:
  /// `config` must outlive it. Throws ConfigError where it names a turn that the task has not, or asks for what does
  /// not go with turns, and where a parameter is in no turn.
  TrainingTurns(const ExperimentConfig& config, const Task& task, const Model& model);

  bool any() const { return !turns_.empty(); }

  /// The turn of a parameter. Buckets hold the parameters of one turn.
  std::size_t of(const std::string& parameter) const { return any() ? table_.of(parameter) : 0; }

  /// The parameters of each turn.
  std::vector<std::vector<at::Tensor>> parameters(const Model& model) const;

  /// The config's optimizer, or one for each turn: that of its section in `turns`, else the config's.
  std::unique_ptr<Optimizer> make_optimizer();

  /// Returns a part of checkpoints with the number of updates of each turn, which differ where loss scaling leaves some
  /// out; none without turns. To be called after make_optimizer(), whose optimizer must outlive the part.
  std::vector<CheckpointPart> parts();

  /// The current turn, which the step sets and the optimizer reads.
  std::size_t& current() { return *current_; }

 private:
  const ExperimentConfig& config_;
  std::vector<Task::Turn> turns_;
  GroupTable table_;
  TurnOptimizer* optimizer_ = nullptr;  // made by make_optimizer(); null: there is one turn
  std::shared_ptr<std::size_t> current_ = std::make_shared<std::size_t>(0);
};

}  // namespace phalanx
