// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/experiment/config.h"
#include "engine/watch/run_folder.h"
#include "framework/base/config/locate.h"
#include "framework/comm/communicator.h"
#include "framework/ps/current_servers.h"

namespace phalanx {

/// What a rank of a job works with.
struct RankContext {
  const ExperimentConfig& config;
  const RunFolder& folder;
  CommunicatorPtr world;                          // of the ranks that train; takes tensors of `device`
  c10::Device device{c10::kCPU};                  // this rank's, where it computes
  Splits splits;                                  // the config's dataset
  std::shared_ptr<ps::CurrentServers> servers;    // parameter servers of the run; null: none
  bool terminal = false;                          // standard output ends at one
  std::chrono::steady_clock::time_point started;  // when the user started the job
};

/// Trains as the config says, and tells on rank 0 how it ended. Returns the exit status.
int train(const RankContext& rank);

/// Something that all ranks of a config do together: an experiment, or an evaluation of saved weights.
struct Job {
  ExperimentConfig config{};
  config::Sources sources{};           // of the config, for the places of errors
  std::string run_dir{};               // as given; empty: to be chosen
  std::vector<std::string> command{};  // this process's own command line, for ranks that mpirun starts
  std::chrono::steady_clock::time_point started{};
  std::function<int(const RankContext&)> body = train;  // what each rank does; returns its exit status
  bool saves = true;                                    // body stops after a step when it is asked to, and saves itself
  bool quiet = false;                                   // tells nothing of its own accord but failures
  std::shared_ptr<void> claim{};  // of the run folder, once it is chosen; in the process that has chosen it
};

/// Runs the job and returns its exit status (ExitStatus).
///
/// A process that a launcher started as a rank (mpirun, srun, torchrun: see launch_environment.h) joins its peers. One
/// that nobody launched starts the ranks that the config asks for: as threads (backend inproc, or one rank), as forks
/// of itself on this host, or by mpirun. Call in a process with one thread. Throws ConfigError before anything runs.
int run_job(Job& job);

}  // namespace phalanx
