// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace phalanx {

/// What a training step spends its time on, in this order.
enum class Phase {
  kData,           // waiting for the batch
  kForward,        // output and loss; batch norm over all ranks waits for them here and in backward
  kBackward,       // gradients; what a strategy communicates meanwhile costs no time of its own
  kCommunication,  // waiting for other ranks: before, within and after the update
  kUpdate,         // the optimizer, with clipping
  kHooks,          // meters, logs, checkpoints: everything that watches
};
inline constexpr int kPhases = 6;

/// "data", "forward", "backward", "communication", "update", "hooks".
std::string_view to_string(Phase phase);

/// What some steps of one rank took, by phase.
struct PhaseTimes {
  std::array<double, kPhases> seconds{};
  std::int64_t steps = 0;

  PhaseTimes operator-(const PhaseTimes& before) const;
};

/// Splits the time of one thread into phases, like a stopwatch with laps: each lap() gives all time since the one
/// before to a phase. Costs a reading of the clock, about 25 ns.
class StepClock {
 public:
  /// Is told of every lap; times as of monotonic_ns().
  using Listener = std::function<void(Phase phase, std::int64_t begin_ns, std::int64_t end_ns)>;

  void lap(Phase phase);
  void skip();  // the time since the last lap was no part of a step
  void end_step() { ++total_.steps; }

  /// Of all steps so far.
  const PhaseTimes& total() const { return total_; }

  /// Who listens from now on; nobody: {}.
  void listen(Listener listener) { listener_ = std::move(listener); }

 private:
  PhaseTimes total_;
  std::int64_t last_ns_ = 0;
  Listener listener_;
};

}  // namespace phalanx
