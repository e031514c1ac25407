// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/config/watch_config.h"
#include "engine/engine.h"
#include "engine/hooks/watching/gradient_norms.h"
#include "engine/hooks/watching/nan_guard.h"
#include "engine/hooks/watching/profiler.h"
#include "engine/hooks/watching/step_digests.h"
#include "engine/optim/optimizer.h"
#include "engine/run_folder.h"
#include "engine/run_length.h"
#include "framework/comm/communicator.h"
#include "framework/observe/times/step_clock.h"
#include "framework/observe/trace/nvtx.h"

namespace phalanx {

/// The observers of a run's steps: the clock of their phases, the guard against values that are not finite, the norms
/// of each rank's gradients, the profiler, the digests for comparisons, and the ranges for NVIDIA's tools.
class Watching {
 public:
  /// `digests`: train.digests.
  Watching(const WatchConfig& config, const CommunicatorPtr& world, const RunFolder& folder, std::int64_t digests = 0);

  /// Returns the clock, for a TimedStep around the plain step and a TimedUpdate around the whole optimizer.
  StepClock& clock() { return clock_; }
  NanGuard& nan_guard() { return nan_guard_; }
  StepDigests& digests() { return digests_; }

  /// Returns the norms, which have to be attached separately, since they need to know the replica.
  GradientNorms& gradient_norms() { return gradient_norms_; }

  /// Adds hooks to the first phase and to the last one: the time in between counts as hooks. `length` is that
  /// of the run, and must outlive the training.
  void attach(Engine& engine, const RunLength& length);

 private:
  StepClock clock_;
  NanGuard nan_guard_;
  GradientNorms gradient_norms_;
  Profiler profiler_;
  StepDigests digests_;
  std::optional<NvtxRanges> nvtx_;
};

}  // namespace phalanx
