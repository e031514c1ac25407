// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/watch/run_folder.h"
#include "framework/comm/launch_environment.h"
#include "launch/job/job.h"
#include "launch/stop_words.h"

namespace phalanx {

/// How the job stops when it is asked to.
Stopping stopping_of(const Job& job);

/// Runs all ranks of the job as threads of this process. Returns its exit status; failures are left in the log folder.
int run_threads(const Job& job, const RunFolder& folder);

/// Runs this process's rank, in a folder that exists. Returns its exit status; exceptions are its caller's.
int run_joined_rank(const Job& job, const RunFolder& folder, const LaunchEnvironment& launched);

/// Runs this process's rank of a job started by mpirun, srun or torchrun. Unless that was launch_mpi(), the ranks agree
/// on the run folder and report their failures themselves. Returns the exit status.
int join(Job& job, const LaunchEnvironment& told);

}  // namespace phalanx
