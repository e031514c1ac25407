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

/// Has every rank run `body` and returns this process's exit status (ExitStatus).
///
/// A process that nobody launched starts the ranks, by launch_local() or by launch_mpi() of its own executable, and
/// reports failures as these do; call it with one thread. Logs and failures are in a temporary folder meanwhile.
/// A process that start_ranks() or another launcher started is a rank, whatever `start` says; under another launcher
/// what body throws is thrown on.
///
/// Throws what the launchers and detect_launch_environment() throw.
int start_ranks(const RankStart& start, const std::function<int(const LaunchEnvironment& launched)>& body);

}  // namespace phalanx
