// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/step/step_listener.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// A step that calls listeners before and after another one. Listeners nest: the first one is the outermost, so it is
/// called first before a step or an evaluation, and last after backward and after a step.
class StepWithListeners final : public Step {
 public:
  using Listeners = std::vector<std::shared_ptr<StepListener>>;

  /// `inner` must outlive it.
  StepWithListeners(Step& inner, Listeners listeners) : inner_(inner), listeners_(std::move(listeners)) {}

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

 private:
  void after_backward();

  Step& inner_;
  Listeners listeners_;
};

}  // namespace phalanx
