// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/equal.h>

#include "framework/base/error.h"
#include "framework/parallel/random_state.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// A step of one of several threads that train in one process, which have LibTorch's generator of random numbers in
/// common: what each of them draws from it depends on who comes first, and so would the result. (Dropout of
/// models/dropout.h does not draw from it.) The first run() looks whether the generator has moved on, and throws
/// ConfigError where it has.
class NoRandomStep final : public Step {
 public:
  explicit NoRandomStep(Step& inner) : inner_(inner) {}  // which must outlive it

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
