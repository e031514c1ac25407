// SPDX-License-Identifier: Apache-2.0
#include "launch/job/launcher_refusals.h"

#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/host_slots.h"
#include "launch/agents/slurm_nodes.h"
#include "launch/mpirun/mpirun.h"

namespace phalanx {

void refuse_restarts(const Job& job, const LaunchEnvironment& launched) {
  if (job.config.launch.restarts == 0 || environment("PHALANX_LAUNCHER")) return;
  throw ConfigError(
      {{.origin = "config",
        .key = "launch.restarts",
        .message = launched.launcher + " has started these ranks, and only it can start them again (torchrun "
                                       "--max-restarts, sbatch --requeue); set 0"}});
}

void refuse_shrinking(const Job& job, const std::string& launcher) {
  if (!job.goes_on()) return;
  if (environment("PHALANX_LAUNCHER") && backend_traits(job.config.backend).mpi) return;
  const std::string instead =
      launcher == "srun" ? "start one process in the script of sbatch or the shell of salloc, without srun, and set "
                           "launch.with: srun, or mpi with backend: mpi"
                         : "set launch.with: local, or ssh for several hosts, or mpi with backend: mpi";
  throw ConfigError({{.origin = "config",
                      .key = "faults.on_lost_rank",
                      .message = job.config.faults.on_lost_rank + " needs ranks that our own launcher starts, but " +
                                 launcher + " starts these; " + instead + ", or set faults.on_lost_rank: stop"}});
}

void require_ulfm(const Job& job) {
  if (!job.goes_on()) return;
  const auto refuse = [&](const char* key, const std::string& message) {
    throw ConfigError({{.origin = "config", .key = key, .message = message + ", or set faults.on_lost_rank: stop"}});
  };
  const std::string& wanted = job.config.faults.on_lost_rank;
  const auto why = why_no_ulfm(identify_mpirun(find_mpirun()));
  if (!why.empty()) refuse("faults.on_lost_rank", wanted + ": " + why);
  const auto words = words_against_ulfm(job.config.launch.mpirun_options);
  if (words.empty()) return;
  refuse("launch.mpirun_options", words + " contradicts faults.on_lost_rank: " + wanted +
                                      ", for which mpirun gets --with-ft ulfm; remove these words");
}

void require_agents(const LaunchConfig& launch) {
  if (launch.with == "srun") {
    require_srun(launch.hosts, &environment);
  } else {
    require_ssh(launch.hosts);
  }
}

void use_nodes_of_slurm(LaunchConfig& launch) {
  if (launch.with != "srun" || !launch.hosts.empty()) return;
  const auto nodes = nodes_of_slurm_job(&environment);
  std::vector<HostSlots> places;
  for (const auto& node : nodes) places.push_back(parse_host(node));
  const auto tasks = total_slots(places);
  if (tasks && launch.ranks > *tasks) {
    throw ConfigError(
        {{.origin = "config",
          .key = "launch.ranks",
          .message = std::to_string(launch.ranks) + " ranks are more than the " + std::to_string(*tasks) +
                     (*tasks == 1 ? " task" : " tasks") +
                     " of this Slurm job; submit it with more (--ntasks-per-node), or start fewer ranks"}});
  }
  launch.hosts = nodes;
}

}  // namespace phalanx
