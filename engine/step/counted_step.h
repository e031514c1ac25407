// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "engine/watch/operation_count.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// Counts the floating-point operations of the first step of training (engine/watch/operation_count.h).
class CountedStep final : public Step {
 public:
  explicit CountedStep(Step& inner) : inner_(inner) {}  // `inner` must outlive it

  Result run(const Batch& batch, const Watch& watch) override {
    if (operations_) return inner_.run(batch, watch);
    Result result;
    samples_ = batch.global_rows;
    operations_ = count_operations([&] { result = inner_.run(batch, watch); });
    return result;
  }
  Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

  /// Returns the operations of this rank and the samples of all ranks, or 0 before the first step.
  double operations() const { return operations_.value_or(0); }
  std::int64_t samples() const { return samples_; }

 private:
  Step& inner_;
  std::optional<double> operations_;
  std::int64_t samples_ = 0;
};

}  // namespace phalanx
