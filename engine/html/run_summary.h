// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/observe/times/step_times.h"

namespace phalanx {

/// The time of a run's steps by phase, in seconds of a step.
struct TimeOfStep {
  std::vector<std::pair<std::string, RankSpread>> phases;
  RankSpread own_work, whole;
  std::string straggler;  // sentence that names the straggler, or says that there is no straggler
};

/// Steps of a run that were taken by another number of ranks than it began with.
struct Stretch {
  double from = 0, to = 0;  // the steps after `from`, up to `to`, which is infinite up to the end of the run
  int ranks = 0;            // that took them
};

/// The parts of summary.json that pages show. Missing values are 0 or empty.
struct RunSummary {
  std::string name{};
  std::string strategy{};                                 // name of the strategy
  std::vector<std::pair<std::string, double>> counted{};  // counters of the strategy, on rank 0
  bool stopped = false;                                   // the run was stopped before its end
  std::string chosen_by{};  // split that decided when to stop, the learning rate or the best checkpoint
  double samples_per_second = 0, train_seconds = 0;
  std::optional<double> share_of_peak{};  // share of the peak rate of matrix products that the run reached
  std::int64_t steps = 0;
  int ranks = 0;
  std::int64_t restarts = 0;              // after failures
  std::int64_t lost_ranks = 0;            // without which the run has gone on
  double lost_seconds = 0;                // time that failures have cost
  std::optional<TimeOfStep> step_time{};  // absent: the run has taken no step
  std::vector<Stretch> stretches{};       // after ranks were lost or have joined, in order
  std::vector<std::pair<std::string, std::string>> provenance{};
};

/// Reads summary.json. Throws DataError, which names `path`, if the file is malformed or has other types.
RunSummary read_summary(const std::string& path);

}  // namespace phalanx
