// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/optim/optimizer.h"
#include "engine/schedule/schedule.h"

namespace phalanx {

/// The learning rate of a run: the one that the optimizer has at the beginning, times the factor of the schedule.
class LearningRate {
 public:
  /// `steps`: the number of steps of the whole run. The optimizer must outlive the object.
  LearningRate(std::unique_ptr<Schedule> schedule, Optimizer& optimizer, std::int64_t steps)
      : schedule_(std::move(schedule)), optimizer_(optimizer), initial_(optimizer.learning_rate()), steps_(steps) {}

  Schedule& schedule() { return *schedule_; }

  /// Returns the schedule's factor for an update.
  double factor(std::int64_t step) const { return schedule_->factor(step, steps_); }

  /// Gives the optimizer the learning rate for an update.
  void set(std::int64_t step) { optimizer_.set_learning_rate(initial_ * factor(step)); }

 private:
  std::unique_ptr<Schedule> schedule_;
  Optimizer& optimizer_;
  double initial_;
  std::int64_t steps_;
};

}  // namespace phalanx
