// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "engine/optim/optimizer.h"
#include "engine/watch/config.h"
#include "engine/watch/nan_guard.h"
#include "engine/watch/profiler.h"
#include "engine/watch/run_folder.h"
#include "engine/watch/step_clock.h"
#include "framework/comm/communicator.h"
#include "framework/observe/nvtx.h"

namespace phalanx {

/// What watches the steps of a run: the clock of their phases, the guard against numbers that are none, the profiler,
/// and NVIDIA's.
class Watching {
 public:
  Watching(const WatchConfig& config, const CommunicatorPtr& world, const RunFolder& folder);

  /// For a TimedStep around the plain step, and a TimedUpdate around the whole optimizer.
  StepClock& clock() { return clock_; }
  NanGuard& nan_guard() { return nan_guard_; }

  /// Before all other hooks, and after them: what lies between is the time of hooks. `steps`: of the whole run.
  void attach_first(Engine& engine);
  void attach_last(Engine& engine, std::int64_t steps);

 private:
  StepClock clock_;
  NanGuard nan_guard_;
  Profiler profiler_;
  std::optional<NvtxRanges> nvtx_;
};

}  // namespace phalanx
