// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launch/failure/verdict.h"
#include "launch/local/supervisor.h"
#include "launch/mpirun/launch_mpi.h"
#include "launch/mpirun/launcher_notices.h"
#include "launch/mpirun/mpi_losses.h"

namespace phalanx {

/// A job of which mpirun, and with it all ranks, has ended.
struct EndedMpiJob {
  const MpiLaunch& options;
  const std::string& spare;  // folder of kSpareFailureFolder
  Supervisor::End mpirun;
  const LauncherNotices& notices;
  MpiLosses* losses = nullptr;  // null: a lost rank ends the job
};

/// Returns the outcome of the job, from what the ranks have left in its log folder, how mpirun has ended and what it
/// has said. Removes what the ranks have left. Prints what mpirun has said if nothing else explains the end.
///
/// If a job on several hosts that goes on without lost ranks has ended without a reason and without a note of the end
/// of the run (take_end_of_run()), waits up to 60 s for either: a network file system may show late what another host
/// has written. A line on the console says so after 3 s, and a signal that asks `supervisor`, which has run mpirun, to
/// stop ends the wait. The job then counts as interrupted.
Verdict conclude(const EndedMpiJob& job, Supervisor& supervisor);

}  // namespace phalanx
