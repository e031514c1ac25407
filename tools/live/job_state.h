// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/observe/times/step_times.h"

namespace phalanx {

enum class JobPhase { kTraining, kEnded, kDied };

/// The state of a job, as it was measured last.
struct JobState {
  std::string source;  // run folder, or address of the endpoint
  std::string name;
  int ranks = 0;
  std::int64_t step = 0, planned_steps = 0, epoch = 0;    // planned_steps is 0 if it is not known
  double seconds = 0;                                     // since the start of training
  double samples_per_second = 0;                          // of all ranks, in training
  std::optional<double> learning_rate{};                  // of the last step
  std::vector<std::pair<std::string, double>> metrics{};  // by "train/loss"; training first
  StepTimes times{};                                      // without ranks: not measured yet
  double measured_at = 0;                                 // seconds since the epoch
  std::vector<std::string> notes{};  // sentences about ranks that have failed, or for which others wait
  JobPhase phase = JobPhase::kTraining;
};

/// Reads what a run exposes to Prometheus. `source` names it in errors. Throws DataError if it is malformed, or if a
/// metric of ours is missing.
JobState parse_job_state(std::string_view text, const std::string& source);

/// Returns the state of the run in a folder: from its live.prom while it trains, or from its summary.json when it has
/// ended. If no process holds the folder any more although the run has not ended, the run has died. Throws DataError,
/// "FOLDER: ...", if the folder belongs to no run, or to one that has measured nothing yet.
JobState read_job_state(const std::string& folder);

/// Returns the state of the run that serves its metrics at an address: watch.prometheus in its config. Throws an Error.
JobState fetch_job_state(const std::string& address);

/// Returns the run folders in `folder` whose runs train or have died while they trained, the last measured first.
std::vector<std::string> find_live_runs(const std::string& folder);

/// Returns true if a process on this host, or on another one with the same file system, holds the run folder.
bool is_held(const std::string& run_folder);

}  // namespace phalanx
