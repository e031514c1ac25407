// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Device.h>

#include <bit>
#include <cstdint>

#include "engine/step/step_listener.h"
#include "framework/base/random.h"

namespace phalanx {

/// The training step that is being computed: its number, and the seed of the random numbers that belong to rows of the
/// global batch. It must be the outermost listener, so that everything within the step sees the same number.
class CurrentStep final : public StepListener {
 public:
  explicit CurrentStep(std::uint64_t seed_of_run) : seed_of_run_(seed_of_run) {}

  /// Keeps a copy of the seed on a device, where recorded kernels read it. Must be called before the first step.
  void keep_seed_on(c10::Device device) { seed_on_device_ = at::zeros({}, at::device(device).dtype(at::kLong)); }

  /// Sets the number of the next step; without a call it is 0.
  void start_at(std::int64_t step) { next_ = step; }

  void before_step(const Batch& /*batch*/) override {
    number_ = next_++;
    seed_ = mix(seed_of_run_, static_cast<std::uint64_t>(number_));
    if (seed_on_device_.defined()) seed_on_device_.fill_(std::bit_cast<std::int64_t>(seed_));
  }

  /// Return the number of the step, from 0, and its seed, which differs from step to step; 0 before the first step.
  std::int64_t number() const { return number_; }
  std::uint64_t seed() const { return seed_; }

  /// Returns the seed as RandomKey::step_on_device: [] int64, the same tensor in all steps. Undefined: no device has
  /// it.
  const at::Tensor& seed_on_device() const { return seed_on_device_; }

 private:
  std::uint64_t seed_of_run_;
  std::int64_t next_ = 0, number_ = 0;
  std::uint64_t seed_ = 0;
  at::Tensor seed_on_device_;
};

}  // namespace phalanx
