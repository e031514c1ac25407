// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/equal.h>

#include "framework/base/error.h"
#include "framework/parallel/random_state.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// A step of one of several threads that train in one process and share LibTorch's random number generator. The numbers
/// that each of them draws depend on their order, so the results would too. (Dropout of models/dropout.h does not use
/// this generator.) The first run() checks if the generator was used, and throws ConfigError if it was.
class NoRandomStep final : public Step {
 public:
  explicit NoRandomStep(Step& inner) : inner_(inner) {}  // `inner` must outlive it

  Result run(const Batch& batch, const Watch& watch) override {
    if (looked_) return inner_.run(batch, watch);
    looked_ = true;
    const at::Tensor before = random_state();
    Result result = inner_.run(batch, watch);
    if (at::equal(random_state(), before)) return result;
    throw ConfigError(
        "model: draws random numbers from LibTorch's generator during training, but ranks or replicas that are threads "
        "of"
        " one process share it, so results would differ from run to run; use ranks that are processes (backend: shm)"
        " instead of backend inproc or train.data_parallel, and for dropout models/dropout.h");
  }
  Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

 private:
  Step& inner_;
  bool looked_ = false;
};

}  // namespace phalanx
