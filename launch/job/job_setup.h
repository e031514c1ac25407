// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "datasets/dataset.h"
#include "engine/watch/run_folder.h"
#include "framework/comm/communicator.h"
#include "launch/job/job.h"

namespace phalanx {

/// Creates the run folder and writes the config to it. If a run will be resumed, its config is left unchanged until
/// train() replaces it. Throws ConfigError, including for a checkpoint.resume that is not a checkpoint.
RunFolder prepare_folder(Job& job);

// Agreements between ranks that were not started by our own launcher. Collective; all ranks get the same errors.

/// Throws ConfigError unless all ranks have the same config.
void check_same_config(Job& job, Communicator& world);

/// Returns a message for the user if the ranks' processors differ in vendor or vector instructions, which determine the
/// code that computes. The last bits of their results then differ. Returns an empty string if all are of the same kind.
std::string differing_processors(Communicator& world);

/// Calls prepare_folder() on rank 0 and broadcasts the path. Throws ConfigError.
RunFolder agree_on_folder(Job& job, Communicator& world);

/// Returns "runs/<name>-<YYYYmmdd-HHMMSS>", with "-2", "-3", ... if that exists already.
std::string choose_run_dir(const std::string& name);

/// Returns the newest such folder, judged by its name, in which checkpoints were begun. Returns an empty string if no
/// such folder exists.
std::string newest_run_dir(const std::string& name);

/// Prints what is about to run, and in which folder. `backend` is the chosen one, or "auto" if it will be chosen later.
void introduce(const Job& job, const RunFolder& folder, int ranks, const std::string& backend);

/// Returns the config's dataset. If it takes long to create or read, one process (`speaks`) prints how long it has
/// taken. If a stop is requested in the meantime, this process ends with kInterrupted, since there is nothing to save
/// yet.
Splits make_data(const Job& job, bool speaks);

/// Returns true if standard output is a terminal, even if only the launcher's is.
bool on_terminal();

}  // namespace phalanx
