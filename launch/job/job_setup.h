// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "datasets/dataset.h"
#include "engine/watch/run_folder.h"
#include "framework/comm/communicator.h"
#include "launch/job/job.h"

namespace phalanx {

/// Creates the run folder and writes the config to it. The config of a run that is to go on stays as it is, until
/// train() replaces it. Throws ConfigError, also for a checkpoint.resume that is not a checkpoint.
RunFolder prepare_folder(Job& job);

// What ranks agree on if they were not started by our own launcher. Collective; all ranks get the same errors.

/// Throws ConfigError unless all ranks have the same config.
void check_same_config(Job& job, Communicator& world);

/// Returns what to tell a person if the processors of the ranks differ in what decides which code computes: vendor and
/// vector instructions. Their results then differ in their last bits. Empty if all are of one kind.
std::string differing_processors(Communicator& world);

/// Calls prepare_folder() on rank 0 and broadcasts the path. Throws ConfigError.
RunFolder agree_on_folder(Job& job, Communicator& world);

/// "runs/<name>-<YYYYmmdd-HHMMSS>", with "-2", "-3", ... where that exists already.
std::string choose_run_dir(const std::string& name);

/// The newest folder of that form, by its name, in which checkpoints were begun; empty: there is none.
std::string newest_run_dir(const std::string& name);

/// Tells what is about to run, and in which folder. `backend`: as chosen, or "auto" where that comes later.
void introduce(const Job& job, const RunFolder& folder, int ranks, const std::string& backend);

/// The config's dataset. Where it takes long to make or read, one process (`speaks`) tells that it goes on; and when
/// somebody asks for a stop meanwhile, this process ends with kInterrupted, since there is nothing to save yet.
Splits make_data(const Job& job, bool speaks);

/// Returns true if standard output is a terminal, which may be that of a launcher.
bool on_terminal();

}  // namespace phalanx
