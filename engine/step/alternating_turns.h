// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "engine/step/current_step.h"
#include "engine/step/step_listener.h"
#include "engine/task/task.h"

namespace phalanx {

/// Alternates from step to step between the turns of a task that train different parameters (Task::turns()). Only the
/// parameters of the current turn get gradients.
class AlternatingTurns final : public StepListener {
 public:
  /// `parameters` lists the parameters of each turn. `current` must be an outer listener of the same step. `turn` is
  /// set to the current turn, for the optimizer. The task and `turn` must outlive the object.
  AlternatingTurns(Task& task, std::vector<std::vector<at::Tensor>> parameters,
                   std::shared_ptr<const CurrentStep> current, std::size_t& turn)
      : task_(task), parameters_(std::move(parameters)), current_(std::move(current)), turn_(turn) {}

  void before_step(const Batch& /*batch*/) override {
    turn_ = static_cast<std::size_t>(current_->number()) % parameters_.size();
    task_.take_turn(turn_);
    for (std::size_t other = 0; other < parameters_.size(); ++other) {
      for (auto& parameter : parameters_[other]) parameter.requires_grad_(other == turn_);
    }
  }
  void before_evaluation() override { task_.take_turn(0); }

 private:
  Task& task_;
  std::vector<std::vector<at::Tensor>> parameters_;
  std::shared_ptr<const CurrentStep> current_;
  std::size_t& turn_;
};

}  // namespace phalanx
