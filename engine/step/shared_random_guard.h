// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>

#include "engine/step/step_listener.h"
#include "framework/base/error.h"
#include "framework/parallel/random_state.h"

namespace phalanx {

/// Refuses models that draw from LibTorch's random number generator if several threads of one process train and share
/// it. The numbers that each of them draws depend on their order, so the results would too. (Dropout of
/// models/dropout.h does not use this generator.) Checks only the first step, and throws ConfigError after it.
class SharedRandomGuard final : public StepListener {
 public:
  void before_step(const Batch& /*batch*/) override {
    if (!checked_) before_ = random_state();
  }
  void after_step() override {
    if (checked_) return;
    checked_ = true;
    if (at::equal(random_state(), before_)) return;
    throw ConfigError(
        "model: draws random numbers from LibTorch's generator during training, but ranks or replicas that are threads "
        "of one "
        "process share it, so results would differ from run to run; use ranks that are processes (backend: shm)"
        " instead of backend inproc or train.data_parallel, and for dropout models/dropout.h");
  }

 private:
  bool checked_ = false;
  at::Tensor before_;  // state of the generator before the first step
};

}  // namespace phalanx
