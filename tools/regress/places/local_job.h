// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launch/temporary_folder.h"
#include "tools/regress/place.h"
#include "tools/regress/places/process.h"

namespace phalanx::regress {

/// A job that is a process of this host, which may start ranks on others.
class LocalJob final : public RunningJob {
 public:
  /// Starts the job's command. A program that cannot be started becomes the job's end.
  LocalJob(const Job& job, const PlaceOptions& options,
           std::vector<std::pair<std::string, std::string>> variables = {});

  std::optional<JobEnd> poll() override;
  void stop() override;
  void kill() override;

 private:
  using Clock = std::chrono::steady_clock;

  std::string folder_;
  TemporaryFolder temporary_{TemporaryFolder::Removal::kAlways};  // of the job, which may be killed
  std::optional<Process> process_{};
  std::string failure_{};  // why the program did not start
  Clock::time_point deadline_;
  std::optional<Clock::time_point> kill_at_{};
  bool timed_out_ = false;
};

/// Returns the sentence of a run's standard error that shows that not the run but the machine, the network or the disk
/// has failed, or an empty string. Runs that end with an unmet expectation or a refused config never have one.
std::string infrastructure_error(int exit_status, const std::string& errors);

}  // namespace phalanx::regress
