// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/config/watch_config.h"
#include "engine/run_folder.h"

namespace phalanx {

/// The command of watch.on_end, which runs once when a run has ended, however it has ended, in the process that reports
/// the end. It gets a JSON object on standard input: `exit_status`, `run_folder`, `error` (absent if there was none),
/// and all fields of summary.json if the run has written one.
class EndCommand {
 public:
  /// Must be created before the run, since the folder may have the summary of an earlier one. `watch` must outlive the
  /// object.
  EndCommand(const WatchConfig& watch, const std::string& name, const RunFolder& folder);

  /// Runs the command, if there is one, and waits until it ends. If it does not end in time, it is killed with the
  /// processes that it has started. If it fails, writes the reason to standard error and to the log: the run is not
  /// affected. `error`: what the run has failed with; empty: nothing.
  void run(int status, const std::string& error) const;

 private:
  std::string input(int status, const std::string& error) const;

  const WatchConfig& watch_;
  std::string name_;
  RunFolder folder_;
  std::optional<std::filesystem::file_time_type> earlier_;  // time of the summary of an earlier run
};

}  // namespace phalanx
