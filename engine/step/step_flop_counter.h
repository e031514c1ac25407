// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "engine/step/step_listener.h"
#include "engine/watch/operation_count.h"

namespace phalanx {

/// Counts the floating-point operations of the first step of training (engine/watch/operation_count.h).
class StepFlopCounter final : public StepListener {
 public:
  void before_step(const Batch& batch) override {
    if (operations_) return;
    samples_ = batch.global_rows;
    counting_.emplace();
  }
  void after_step() override {
    if (!counting_) return;
    operations_ = counting_->count();
    counting_.reset();
  }

  /// Returns the operations of this rank and the samples of all ranks, or 0 before the first step.
  double operations() const { return operations_.value_or(0); }
  std::int64_t samples() const { return samples_; }

 private:
  std::optional<FlopCounter> counting_;  // during the first step
  std::optional<double> operations_;
  std::int64_t samples_ = 0;
};

}  // namespace phalanx
