// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/times/step_clock.h"

#include "framework/observe/monotonic_clock.h"
#include "framework/observe/times/device_laps.h"

namespace phalanx {

std::string_view to_string(Phase phase) {
  static constexpr std::array<std::string_view, kPhases> kNames{"data",          "forward", "backward",
                                                                "communication", "update",  "hooks"};
  return kNames[static_cast<std::size_t>(phase)];
}

PhaseTimes PhaseTimes::operator-(const PhaseTimes& before) const {
  PhaseTimes difference{.seconds = seconds, .steps = steps - before.steps};
  for (std::size_t i = 0; i < kPhases; ++i) difference.seconds[i] -= before.seconds[i];
  return difference;
}

StepClock::StepClock() = default;
StepClock::~StepClock() = default;

void StepClock::measure_on(const c10::Device& device) {
  if (!device.is_cpu()) device_ = std::make_unique<DeviceLaps>(device);
}

void StepClock::lap(Phase phase) {
  if (paused_) return;
  const std::int64_t now = monotonic_ns();
  if (listener_) listener_(phase, last_ns_, now);
  if (device_) {
    device_->lap(phase);
  } else {
    total_.seconds[static_cast<std::size_t>(phase)] += static_cast<double>(now - last_ns_) * 1e-9;
  }
  last_ns_ = now;
}

void StepClock::skip() {
  last_ns_ = monotonic_ns();
  if (device_) device_->skip();
}

void StepClock::end_step() {
  if (device_) return device_->end_step();
  ++total_.steps;
}

const PhaseTimes& StepClock::total() { return device_ ? device_->total() : total_; }

void StepClock::synchronize() {
  if (device_) device_->synchronize();
}

}  // namespace phalanx
