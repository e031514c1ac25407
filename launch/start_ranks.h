// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/comm/launch/launch_environment.h"

namespace phalanx {

struct RankStart {
  int ranks = 2;
  bool with_mpirun = false;            // otherwise ranks are forks of this process
  std::vector<std::string> hosts{};    // for mpirun: "name" or "name:slots"; empty: this host
  std::vector<std::string> command{};  // for mpirun: this program's command line, as passed to main()
};

/// Runs `body` on every rank and returns this process's exit status (ExitStatus).
///
/// If no launcher started this process, it starts the ranks, with launch_local(), or with launch_mpi() and its own
/// executable, and reports failures as these functions do. It must then be called with a single thread. Logs and
/// failures are kept in a temporary folder during the run. A process started by start_ranks() or another launcher is a
/// rank, regardless of `start`. Under another launcher, exceptions of `body` propagate.
///
/// Throws what the launchers and detect_launch_environment() throw.
int start_ranks(const RankStart& start, const std::function<int(const LaunchEnvironment& launched)>& body);

}  // namespace phalanx
