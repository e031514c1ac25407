#pragma once

#include <functional>
#include <string>

#include "framework/comm/launch_environment.h"

namespace phalanx {

/// Runs `body` as rank `rank` and returns the exit status of its process: body's result, or for an exception kUsage
/// (ConfigError) or kFailed, with the exception left in `log_folder` as this rank's failure (see failure.h); a
/// CommError that is the echo of another rank's failure is left as a secondary one. `log` is the rank's log file.
///
/// A rank started by launch_mpi() also dies, from here on, with the daemon that started it.
int run_rank(int rank, const std::string& log_folder, const std::string& log, const std::function<int()>& body);

/// Has `ranks` threads of this process run `body`, each with its place on this one host. Blocks until all have ended,
/// and then throws what was thrown first: the others fail because of it.
void run_rank_threads(int ranks, const std::function<void(const RankInfo& rank_info)>& body);

}  // namespace phalanx
