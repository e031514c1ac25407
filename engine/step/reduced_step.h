// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "framework/parallel/step.h"

namespace phalanx {

/// A step that calls a function after each of its backwards, before watchers are told about the backward.
class ReducedStep final : public Step {
 public:
  /// `inner` must outlive it.
  ReducedStep(Step& inner, std::function<void()> after_backward)
      : inner_(inner), after_backward_(std::move(after_backward)) {}

  Result run(const Batch& batch, const Watch& watch) override {
    return inner_.run(batch, [&](Stage stage, const Result& result) {
      if (stage == Stage::kBackward) after_backward_();
      watch(stage, result);
    });
  }
  Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

 private:
  Step& inner_;
  std::function<void()> after_backward_;
};

}  // namespace phalanx
