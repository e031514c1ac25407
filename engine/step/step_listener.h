// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/base/batch.h"

namespace phalanx {

/// Observes the steps of a StepWithListeners, or adds something before or after them. Each function does nothing unless
/// it is overridden. All of them are called by the thread that runs the step.
class StepListener {
 public:
  virtual ~StepListener() = default;

  /// Called before a training step computes anything.
  virtual void before_step(const Batch& /*batch*/) {}

  /// Called when the step has computed its gradients, before watchers see Stage::kBackward.
  virtual void after_backward() {}

  /// Called after the step, unless it has thrown.
  virtual void after_step() {}

  /// Called before a batch is evaluated.
  virtual void before_evaluation() {}
};

}  // namespace phalanx
