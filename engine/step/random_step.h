#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "framework/base/random.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// The seed of the random numbers of the step that is being computed (RandomKey::step).
using StepSeed = std::shared_ptr<std::uint64_t>;

/// Around all others: gives each step a seed of its own.
class RandomStep final : public Step {
 public:
  /// `current` is what the steps inside look at. `inner` must outlive it.
  RandomStep(Step& inner, StepSeed current, std::uint64_t seed)
      : inner_(inner), current_(std::move(current)), seed_(seed) {}

  /// The next step is that of this number.
  void set_step(std::int64_t step) { step_ = step; }

  Result run(const Batch& batch, const Watch& watch) override {
    *current_ = mix(seed_, static_cast<std::uint64_t>(step_++));
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
