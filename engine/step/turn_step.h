// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/task/task.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// The steps of a task whose turns train different parameters (Task::turns()). Turns alternate from step to step, and
/// only the parameters of the current turn get gradients.
class TurnStep final : public Step {
 public:
  /// `parameters` lists the parameters of each turn. `turn` is set to the current turn, for the optimizer. All
  /// arguments must outlive the step.
  TurnStep(Step& inner, Task& task, std::vector<std::vector<at::Tensor>> parameters, std::size_t& turn)
      : inner_(inner), task_(task), parameters_(std::move(parameters)), turn_(turn) {}

  /// Sets the number of the next step.
  void set_step(std::int64_t step) { step_ = step; }

  Result run(const Batch& batch, const Watch& watch) override {
    take_turn(static_cast<std::size_t>(step_++) % parameters_.size());
    return inner_.run(batch, watch);
  }
  Result evaluate(const Batch& batch, const Watch& watch) override {
    task_.take_turn(0);
    return inner_.evaluate(batch, watch);
  }

 private:
  void take_turn(std::size_t turn) {
    turn_ = turn;
    task_.take_turn(turn);
    for (std::size_t other = 0; other < parameters_.size(); ++other) {
      for (auto& parameter : parameters_[other]) parameter.requires_grad_(other == turn);
    }
  }

  Step& inner_;
  Task& task_;
  std::vector<std::vector<at::Tensor>> parameters_;
  std::size_t& turn_;
  std::int64_t step_ = 0;
};

}  // namespace phalanx
