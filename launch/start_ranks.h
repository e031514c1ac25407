// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/comm/launch_environment.h"

namespace phalanx {

struct RankStart {
  int ranks = 2;
  bool with_mpirun = false;            // otherwise they are forks of this process
  std::vector<std::string> hosts{};    // of mpirun: "name" or "name:slots"; empty: this host
  std::vector<std::string> command{};  // of mpirun: this program's own command line, as main() got it
};

/// Runs `body` on every rank and returns this process's exit status (ExitStatus).
///
/// If no launcher started this process, it starts the ranks, with launch_local() or with launch_mpi() of its own
/// executable, and reports failures as these do; call it with a single thread. Logs and failures are kept in a
/// temporary folder meanwhile. A process started by start_ranks() or another launcher is a rank, whatever `start` says;
/// under another launcher, exceptions of `body` propagate.
///
/// Throws what the launchers and detect_launch_environment() throw.
int start_ranks(const RankStart& start, const std::function<int(const LaunchEnvironment& launched)>& body);

}  // namespace phalanx
