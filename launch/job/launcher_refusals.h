// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/launch/launch_environment.h"
#include "launch/job/job.h"

// These functions refuse, before anything starts, what the launcher of the ranks cannot do, and say what to use
// instead.
namespace phalanx {

/// Throws ConfigError if the job is to be started again after failures (launch.restarts), but another launcher than
/// ours has started this rank: such a launcher starts ranks again by itself, or does not.
void refuse_restarts(const Job& job, const LaunchEnvironment& launched);

/// Throws ConfigError if the job is to go on without lost ranks (faults.on_lost_rank), but `launcher` has started this
/// rank. Other launchers than ours end all ranks when one is lost, and only ours can tell the others why it was lost.
/// Below our launcher, mpirun goes on if MPI can; the ranks find out (why_no_shrink()).
void refuse_shrinking(const Job& job, const std::string& launcher);

/// Throws ConfigError if the job is to go on without lost ranks, but mpirun, which would start the ranks, or options
/// for it would end all ranks when one is lost.
void require_ulfm(const Job& job);

/// Throws ConfigError if agents cannot be started on the hosts (launch.with: ssh or srun).
void require_agents(const LaunchConfig& launch);

/// Fills in the hosts with the nodes of the Slurm job if srun starts agents and no hosts are named. Throws ConfigError
/// if there is no such job, or if it has fewer tasks than there are to be ranks.
void use_nodes_of_slurm(LaunchConfig& launch);

}  // namespace phalanx
