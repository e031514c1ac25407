// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace phalanx::bench_train {

/// A rank's end of a measurement in turns. It says "ready KERNELS" (kernels::kernels_in_use(); a peer says "ready").
/// Then it trains when a line on its input tells it to, and sleeps otherwise:
///   run STEPS     answers {"seconds": time of all these steps, "backward": seconds of them in backward (null for peers
///                 that do not time it separately), "losses": one per step; empty if another rank of a pipeline has
///                 them}
/// When the input ends, the process ends at once.
class Turns {
 public:
  Turns(std::istream& in, std::ostream& out) : in_(in), out_(out) {}

  /// Adds its hooks, to the phase of callers. Must outlive the engine's run.
  void attach(Engine& engine);

 private:
  using Clock = std::chrono::steady_clock;

  void wait();
  void count(const State& state);

  std::istream& in_;
  std::ostream& out_;
  std::int64_t steps_ = 0, left_ = 0;
  std::vector<double> losses_;  // losses of the turn
  Clock::time_point start_{}, backward_start_{};
  Clock::duration backward_{};
};

}  // namespace phalanx::bench_train
