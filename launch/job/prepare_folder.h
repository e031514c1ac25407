// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "engine/config/experiment_config.h"
#include "engine/run_folder.h"
#include "launch/job/job.h"

namespace phalanx {

/// A run folder that no other run may use while `claim` exists (see RunFolder::claim()).
struct ClaimedFolder {
  RunFolder folder{};
  std::shared_ptr<void> claim{};  // null on ranks other than the one that has claimed the folder
};

/// Chooses the run folder of a job, creates it and writes the config to it. If a run will be resumed, its config is
/// left unchanged until its checkpoint has been accepted (write_inputs_at_start()). Throws ConfigError, including for a
/// checkpoint.resume that is not a checkpoint.
ClaimedFolder prepare_folder(const Job& job);

/// Writes the config to its place in the run folder.
void write_config(ExperimentConfig config, const RunFolder& folder);

/// Returns "runs/<name>-<YYYYmmdd-HHMMSS>", with "-2", "-3", ... if that exists already.
std::string choose_run_dir(const std::string& name);

/// Returns the newest such folder, judged by its name, in which checkpoints were begun. Returns an empty string if no
/// such folder exists.
std::string newest_run_dir(const std::string& name);

}  // namespace phalanx
