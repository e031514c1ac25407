// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/times/step_clock.h"

#include "framework/observe/monotonic_clock.h"

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

void StepClock::lap(Phase phase) {
  const std::int64_t now = monotonic_ns();
  total_.seconds[static_cast<std::size_t>(phase)] += static_cast<double>(now - last_ns_) * 1e-9;
  if (listener_) listener_(phase, last_ns_, now);
  last_ns_ = now;
}

void StepClock::skip() { last_ns_ = monotonic_ns(); }

}  // namespace phalanx
