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

/// The environment in which a rank of a job works.
struct RankContext {
  const ExperimentConfig& config;
  const RunFolder& folder;
  CommunicatorPtr world;                          // the ranks that train; accepts tensors of `device`
  c10::Device device{c10::kCPU};                  // the device on which this rank computes
  Splits splits;                                  // the config's dataset
  std::shared_ptr<ps::CurrentServers> servers;    // parameter servers of the run; null without servers
  bool terminal = false;                          // standard output is a terminal
  std::chrono::steady_clock::time_point started;  // when the user started the job
};

/// Trains according to the config and prints on rank 0 how it ended. Returns the exit status.
int train(const RankContext& rank);

/// An action that all ranks of a config perform together: an experiment, or an evaluation of saved weights.
struct Job {
  ExperimentConfig config{};
  config::Sources sources{};           // places of the config's values, to locate errors
  std::string run_dir{};               // folder as given; empty: will be chosen
  std::vector<std::string> command{};  // command line of this process, for ranks started by mpirun
  std::chrono::steady_clock::time_point started{};
  std::function<int(const RankContext&)> body = train;  // the work of each rank; returns its exit status
  bool saves = true;                                    // body stops after a step if requested, and saves its state
  bool quiet = false;                                   // prints only failures on its own initiative
  std::shared_ptr<void> claim{};                        // claim of the run folder, in the process that has chosen it
};

/// Runs the job and returns its exit status (ExitStatus).
///
/// A process that a launcher started as a rank (mpirun, srun, torchrun: see launch_environment.h) joins its peers. Any
/// other process starts the ranks that the config asks for: as threads (backend inproc, or one rank), as forks of
/// itself on this host, or by mpirun. Must be called while the process has one thread. Throws ConfigError before
/// anything runs.
int run_job(Job& job);

}  // namespace phalanx
