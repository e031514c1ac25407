// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/comm/launch_environment.h"

namespace phalanx {

/// Runs `body` as rank `rank` and returns the exit status for its process: the result of `body`, or, if it throws,
/// kUsage (ConfigError), kRankDied (ps::ServerLost) or kFailed. The exception is left in `log_folder` as this rank's
/// failure (see failure.h), as a secondary one if it is a CommError caused by another rank's failure. `log` is the
/// rank's log file.
int run_rank(int rank, const std::string& log_folder, const std::string& log, const std::function<int()>& body);

/// Runs `body` in `ranks` threads of this process, each with its rank on this single host. Blocks until all have ended,
/// then rethrows the first exception, since the others are consequences of it.
void run_rank_threads(int ranks, const std::function<void(const RankInfo& rank_info)>& body);

}  // namespace phalanx
