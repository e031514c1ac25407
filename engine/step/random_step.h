// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "framework/base/random.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// The seed of the random numbers in the current step. RandomKey describes both members.
struct SeedOfStep {
  std::uint64_t value = 0;
  at::Tensor on_device{};  // undefined, or created once and then overwritten in each step

  void set(std::uint64_t seed) {
    value = seed;
    if (on_device.defined()) on_device.fill_(std::bit_cast<std::int64_t>(seed));
  }
};
using StepSeed = std::shared_ptr<SeedOfStep>;

/// The outermost step, which gives each step its own seed.
class RandomStep final : public Step {
 public:
  /// `current` is read by the inner steps. `inner` must outlive this object.
  RandomStep(Step& inner, StepSeed current, std::uint64_t seed)
      : inner_(inner), current_(std::move(current)), seed_(seed) {}

  /// Sets the number of the next step.
  void set_step(std::int64_t step) { step_ = step; }

  Result run(const Batch& batch, const Watch& watch) override {
    current_->set(mix(seed_, static_cast<std::uint64_t>(step_++)));
    return inner_.run(batch, watch);
  }
  Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

 private:
  Step& inner_;
  StepSeed current_;
  std::uint64_t seed_;
  std::int64_t step_ = 0;
};

}  // namespace phalanx
