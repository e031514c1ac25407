// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/watch_config.h"
#include "engine/engine.h"
#include "engine/run_length.h"
#include "framework/comm/communicator.h"
#include "framework/observe/times/step_clock.h"
#include "framework/observe/trace/chrome_trace.h"
#include "framework/observe/trace/operator_trace.h"

namespace phalanx {

/// Writes a trace of all ranks in a window of steps to one file, on the clock of rank 0: each step and its phases, the
/// operators of LibTorch, and the operations between ranks (in a long window, only the last 4096 of a rank).
class Profiler {
 public:
  /// All arguments except the config, which is copied, must outlive the profiler. `path`: the file that rank 0 writes.
  Profiler(const ProfileConfig& config, CommunicatorPtr world, StepClock& clock, std::string path)
      : config_(config), world_(std::move(world)), clock_(clock), path_(std::move(path)) {}

  /// Adds the hooks, to the last phase. Hooks of this phase that end the clock's laps must already have been added, so
  /// that the laps are in the window. Steps are counted from the beginning of the run, also if it resumes: within the
  /// window, the trace begins there, and after it, there is no trace. `length`, which must outlive the training, is
  /// read when it begins, since a run that resumes may have another one. Then ConfigError is thrown for a window that
  /// begins after the last step.
  void attach(Engine& engine, const RunLength& length);

 private:
  void begin();
  void end_step(const State& state);
  void finish();
  RankTrace trace();

  ProfileConfig config_;
  CommunicatorPtr world_;
  StepClock& clock_;
  std::string path_;
  bool recording_ = false;
  std::int64_t begin_ns_ = 0, step_begin_ns_ = 0;
  std::vector<TraceEvent> events_;
  std::optional<OperatorTrace> operators_;
};

}  // namespace phalanx
