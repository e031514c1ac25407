// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/experiment/config.h"
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

/// Does what this rank is there for: the job's body among the ranks that train, or serving them until all of them have
/// gone (`roles.server`). `context.world` is of all ranks. Collective. Returns the exit status. Throws ConfigError
/// where no rank is left to train.
int run_in_role(const Job& job, RankContext context);

/// Who decided which cores this process may use.
enum class CoresFrom {
  kUs,        // Phalanx has started the ranks: all of this host may use the same ones
  kLauncher,  // another launcher, which may have bound each rank to cores of its own
};

/// Binds this thread and those it starts later as launch.bind_to says, and gives LibTorch as many threads as
/// launch.threads says. Returns a description for the log: "computes with 2 threads, bound to cores 0-1". Call it
/// before the rank has other threads. Throws ConfigError if there are fewer cores than ranks that want one each, if
/// another launcher or a container has restricted this rank to some of the host's cores, which may already be its own,
/// and if the kernel refuses.
std::string take_cores(const LaunchConfig& launch, const RankInfo& rank_info, CoresFrom from);

}  // namespace phalanx
