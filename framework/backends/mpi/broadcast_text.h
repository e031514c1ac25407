// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/backends/mpi/api.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// Starts MPI (start() of runtime.h), sends the text of rank 0 to all ranks and returns it. Ranks whose backend needs a
/// store find it this way. Collective. Throws what start() throws, and CommError: kTimeout if not all ranks have called
/// it within `timeout`.
std::string broadcast_text(const RankInfo& rank_info, const std::string& text, Seconds timeout);

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
