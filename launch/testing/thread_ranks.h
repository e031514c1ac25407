// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/run_folder.h"
#include "launch/job/job.h"

namespace phalanx::testing {

/// Runs all ranks of a job as threads of this process, and returns their exit statuses, by rank. `job.config` must
/// have `ranks` ranks and an inproc backend.
std::vector<int> run_as_threads(const Job& job, const RunFolder& folder, int ranks);

}  // namespace phalanx::testing
