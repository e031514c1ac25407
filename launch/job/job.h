// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "engine/config/experiment_config.h"
#include "engine/experiment/experiment.h"
#include "framework/base/config/locate.h"
#include "framework/comm/launch/init_method.h"

namespace phalanx {

/// An action that all ranks of a config perform together: training, or an evaluation of saved weights.
struct Job {
  ExperimentConfig config{};
  config::Sources sources{};           // places of the config's values, to locate errors
  std::string run_dir{};               // folder as given; empty: will be chosen
  std::vector<std::string> command{};  // command line of this process, for ranks started by mpirun
  InitMethod init{};                   // where this rank meets the others; empty: as its launcher says
  std::chrono::steady_clock::time_point started{};

  /// The work of each rank, if it is not training. Returns the rank's exit status.
  std::function<int(const ExperimentConfig&, const ExperimentContext&)> body = {};

  bool saves = true;   // the ranks stop after a step if requested, and save their state
  bool quiet = false;  // prints only failures on its own initiative

  /// Returns true if the others go on without a rank that is lost (faults.on_lost_rank).
  bool goes_on() const { return config.faults.shrinks() && !body; }
};

/// Runs the job and returns its exit status (ExitStatus).
///
/// A process that a launcher started as a rank (mpirun, srun, torchrun: see launch_environment.h), or for which `init`
/// says where it meets its peers, joins them. Any other process starts the ranks that the config asks for: as threads
/// (backend inproc, or one rank), as forks of itself on this host, or by mpirun. Either way, each rank calls
/// run_rank(). Must be called while the process has one thread. Throws ConfigError before anything runs.
int run_job(const Job& job);

}  // namespace phalanx
