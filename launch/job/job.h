#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/experiment/config.h"

namespace phalanx {

/// A run of an experiment on all its ranks.
struct Job {
  ExperimentConfig config{};
  std::string run_dir{};               // as given; empty: to be chosen
  std::vector<std::string> command{};  // this process's own command line, for ranks that mpirun starts
  std::chrono::steady_clock::time_point started{};
  std::shared_ptr<void> claim{};  // of the run folder, once it is chosen; in the process that has chosen it
};

/// Runs the job and returns its exit status (ExitStatus).
///
/// A process that a launcher started as a rank (mpirun, srun, torchrun: see launch_environment.h) joins its peers. One
/// that nobody launched starts the ranks that the config asks for: as threads (backend inproc, or one rank), as forks
/// of itself on this host, or by mpirun. Call in a process with one thread. Throws ConfigError before anything runs.
int run_job(Job& job);

}  // namespace phalanx
