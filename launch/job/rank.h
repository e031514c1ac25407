// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/experiment/config.h"
#include "engine/watch/run_folder.h"
#include "framework/comm/launch_environment.h"
#include "launch/job/job.h"
#include "launch/stop_words.h"

namespace phalanx {

/// Returns how the job stops when a stop is requested.
Stopping stopping_of(const Job& job);

/// Runs all ranks of the job as threads of this process and returns the job's exit status. Failures are left in the log
/// folder.
int run_threads(const Job& job, const RunFolder& folder);

/// Runs this process's rank in an existing folder and returns its exit status. Exceptions propagate to the caller.
int run_joined_rank(const Job& job, const RunFolder& folder, const LaunchEnvironment& launched);

/// Runs this process's rank of a job started by mpirun, srun or torchrun. Unless launch_mpi() started it, the ranks
/// agree on the run folder and report their failures themselves. Returns the exit status.
int join(Job& job, const LaunchEnvironment& told);

/// Performs the role of this rank: it either runs the job's body with the other training ranks, or serves them until
/// all of them have left (`roles.server`). `context.world` contains all ranks. Collective. Returns the exit status.
/// Throws ConfigError if no rank is left to train.
int run_in_role(const Job& job, RankContext context);

/// Tells who decided which cores this process may use.
enum class CoresFrom {
  kUs,        // Phalanx started the ranks: all ranks of this host may use the same cores
  kLauncher,  // another launcher, which may have bound each rank to its own cores
};

/// Binds this thread, and threads that it starts later, as launch.bind_to specifies, and sets LibTorch's number of
/// threads to launch.threads. Returns a description for the log: "computes with 2 threads, bound to cores 0-1". Must be
/// called before the rank has other threads. Throws ConfigError if there are fewer cores than ranks that need one each,
/// if another launcher or a container has restricted this rank to some of the host's cores, which may already be
/// exclusive to it, or if the kernel refuses.
std::string take_cores(const LaunchConfig& launch, const RankInfo& rank_info, CoresFrom from);

}  // namespace phalanx
