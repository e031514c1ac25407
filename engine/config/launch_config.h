// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// Section `launch` of a config: how the ranks are started.
struct LaunchConfig {
  std::int64_t ranks = 1;
  std::vector<std::string> hosts;
  std::string with = "auto";
  std::int64_t threads = 0;
  std::string bind_to = "none";
  double grace = 60;
  std::int64_t restarts = 0;
  double restart_delay = 1;
  std::int64_t exclude_after = 2;
  bool oversubscribe = false;
  std::vector<std::string> mpirun_options;
  std::vector<std::string> pass_variables;

  /// Returns true if agents on the hosts start the ranks.
  bool by_agents() const { return with == "ssh" || with == "srun"; }

  /// Returns true if the ranks may be on several hosts. Before the job starts, the nodes of a Slurm job are unknown.
  bool on_several_hosts() const { return hosts.size() > 1 || (with == "srun" && hosts.empty()); }

  template <class V>
  void visit(V& v) {
    v("ranks", ranks, "ranks to start if no launcher has started any", config::between(1, 4096));
    v("hosts", hosts,
      "hosts to start them on, as name or name:slots; empty: this host, or, with: srun, the nodes of the Slurm job");
    v("with", with,
      "how to start them; local: forks, mpi: mpirun, ssh: forks on each of the hosts, srun: forks on each node of a "
      "Slurm job, auto: what hosts and backend require",
      config::one_of({"auto", "local", "mpi", "ssh", "srun"}));
    v("threads", threads, "LibTorch threads per rank; 0: as many as it has cores, at most OMP_NUM_THREADS",
      config::between(0, 1024));
    v("bind_to", bind_to,
      "cores to bind each rank to; core: its own share of the host's cores, numa: the cores of a NUMA node",
      config::one_of({"none", "core", "numa"}));
    v("grace", grace, "seconds after SIGTERM to finish the step and save it; then the run ends; 0: no limit",
      config::at_least(0));
    v("restarts", restarts, "how often a job that fails is started again from its newest intact checkpoint",
      config::between(0, 1000));
    v("restart_delay", restart_delay,
      "seconds before that; they double with each restart, up to 60, until a checkpoint is written",
      config::between(0, 86400));
    v("exclude_after", exclude_after, "failures after which a host of launch.hosts is not used for restarts any more",
      config::at_least(1));
    v("oversubscribe", oversubscribe, "start more than 32 ranks per core of this host too");
    v("mpirun_options", mpirun_options,
      "words to add to the command line of mpirun, such as [--mca, btl_tcp_if_include, eth1]");
    v("pass_variables", pass_variables,
      "environment variables that mpirun, ssh or srun passes on to all hosts, by name or, as in NCCL_*, by the "
      "beginning of the name");
  }
};

}  // namespace phalanx
