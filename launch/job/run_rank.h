// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run_folder.h"
#include "launch/job/job.h"
#include "launch/job/started_rank.h"

namespace phalanx {

/// Runs one rank of a job, from its connection to the other ranks to its end, and returns its exit status. The rank may
/// be a thread, in which case all ranks of the job call this function at the same time, or a process.
///
/// An exception is logged with the place of its config key and written to the log folder as the rank's
/// failure (record_exception()). If no launcher of ours supervises the job, one of the ranks also reports the failure.
/// There is no log folder before the ranks of such a job are connected; exceptions up to then propagate to the caller.
int run_rank(const Job& job, StartedRank rank);

/// Makes the data for ranks that will be threads of this process. Errors are logged in the log of rank 0, and
/// ConfigError is thrown with its place.
SharedByThreads prepare_threads(const Job& job, const RunFolder& folder);

}  // namespace phalanx
