// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/optim/decorator.h"
#include "framework/observe/times/step_clock.h"
#include "framework/observe/trace/named_range.h"
#include "framework/parallel/step_decorator.h"

namespace phalanx {

/// A step that reports its forward and backward to a clock, which must outlive it, and gives them names (NamedRange).
/// The time of watchers of its stages counts as hooks.
class TimedStep final : public StepDecorator {
 public:
  TimedStep(Step& inner, StepClock& clock) : StepDecorator(inner), clock_(clock) {}

  Result run(const Batch& batch, const Watch& watch) override {
    clock_.lap(Phase::kHooks);
    NamedRange range;
    range.begin("forward");
    return inner().run(batch, [&](Stage stage, const Result& result) {
      const bool forward = stage == Stage::kForward || stage == Stage::kForwardCriterion;
      clock_.lap(forward ? Phase::kForward : Phase::kBackward);
      if (stage != Stage::kForward && stage != Stage::kBackwardCriterion) range.end();
      watch(stage, result);
      clock_.lap(Phase::kHooks);
      if (stage == Stage::kForwardCriterion) range.begin("backward");
    });
  }

 private:
  StepClock& clock_;
};

/// An optimizer that tells a clock, which must outlive it, when its update begins and ends. The time between backward
/// and update, and between update and the end of the step, counts as communication, and so do exchanges between ranks
/// within it that are timed().
class TimedUpdate final : public OptimizerDecorator {
 public:
  TimedUpdate(std::unique_ptr<Optimizer> inner, StepClock& clock)
      : OptimizerDecorator(std::move(inner)), clock_(clock) {}

  void update() override {
    clock_.lap(Phase::kCommunication);
    NamedRange range;
    range.begin("update");
    inner().update();
    clock_.lap(Phase::kUpdate);
  }

  // A recorded update is not timed: it is launched together with forward and backward.
  std::string why_not_recorded() const override { return inner().why_not_recorded(); }

 private:
  StepClock& clock_;
};

/// Returns a function that calls `exchange`, which combines a tensor of all ranks within an update, and counts its time
/// as communication. The clock must outlive it.
inline std::function<void(at::Tensor&)> timed(std::function<void(at::Tensor&)> exchange, StepClock& clock) {
  return [exchange = std::move(exchange), &clock](at::Tensor& numbers) {
    clock.lap(Phase::kUpdate);
    exchange(numbers);
    clock.lap(Phase::kCommunication);
  };
}

}  // namespace phalanx
