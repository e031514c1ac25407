// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/watch/step_times.h"

namespace phalanx {

/// Where the time of a run's steps went, in seconds of a step.
struct TimeOfStep {
  std::vector<std::pair<std::string, RankSpread>> phases;
  RankSpread own_work, whole;
  std::string straggler;  // who it is, or that there is none
};

/// What pages show of summary.json; what it does not have is 0 or empty.
struct RunSummary {
  std::string name{};
  std::string strategy{};                                 // that the ranks agreed by
  std::vector<std::pair<std::string, double>> counted{};  // by the strategy, on rank 0
  bool stopped = false;                                   // before its end
  std::string chosen_by{};  // the split that decided on when to stop, the learning rate or the best checkpoint
  double samples_per_second = 0, train_seconds = 0;
  std::optional<double> share_of_peak{};  // of the matrix products that the cores can compute
  std::int64_t steps = 0;
  int ranks = 0;
  std::optional<TimeOfStep> step_time{};  // of a run that has taken a step
  std::vector<std::pair<std::string, std::string>> provenance{};
};

/// Throws DataError, with `path`, for what is malformed or of another shape.
RunSummary read_summary(const std::string& path);

}  // namespace phalanx
