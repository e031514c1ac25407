// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "framework/comm/launch/launch_environment.h"

namespace phalanx {

/// Runs `body` in `ranks` threads of this process, each with its rank on this single host. Blocks until all have ended,
/// then rethrows the first exception, since the others are consequences of it.
void run_rank_threads(int ranks, const std::function<void(const RankInfo& rank_info)>& body);

}  // namespace phalanx
