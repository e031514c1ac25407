// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "engine/step/shared_parameters.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// A step for ranks of which the first one updates parameters for all.
class LendingStep final : public Step {
 public:
  /// `inner` must outlive it.
  LendingStep(Step& inner, SharedParameters shared) : inner_(inner), shared_(std::move(shared)) {}

  Result run(const Batch& batch, const Watch& watch) override {
    shared_.before_step();
    return inner_.run(batch, [&](Stage stage, const Result& result) {
      if (stage == Stage::kBackward) shared_.add_up_gradients();
      watch(stage, result);
    });
  }
  Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

  const SharedParameters& shared() const { return shared_; }

 private:
  Step& inner_;
  SharedParameters shared_;
};

}  // namespace phalanx
