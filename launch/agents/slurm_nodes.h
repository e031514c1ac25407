// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/launch/launch_environment.h"

namespace phalanx {

/// Returns the nodes of the Slurm job in which this process runs, as hosts for launch.hosts: "node1:2" if Slurm gives
/// the job two tasks there (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE), "node1" if the number is unknown. Throws
/// ConfigError if this process runs in no job of Slurm, or if the variables are malformed.
std::vector<std::string> nodes_of_slurm_job(const Variables& variables);

/// Throws ConfigError if an agent could not be started on one of the hosts ("name" or "name:slots") by srun: this
/// process runs in no job of Slurm, a host is not in it, or a host is another one than this and srun is not on PATH.
void require_srun(const std::vector<std::string>& hosts, const Variables& variables);

}  // namespace phalanx
