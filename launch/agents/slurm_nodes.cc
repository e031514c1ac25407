// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/slurm_nodes.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_slots.h"
#include "framework/comm/launch/node_list.h"
#include "launch/mpirun/mpirun.h"

namespace phalanx {
namespace {

std::vector<std::string> names_of_nodes(const Variables& variables) {
  const auto list = variables("SLURM_JOB_NODELIST").value_or("");
  if (!list.empty()) return expand_node_list(list);
  throw ConfigError({{.origin = "config",
                      .key = "launch.with",
                      .message = "srun starts ranks on the nodes of a Slurm job, but this process runs in none "
                                 "(SLURM_JOB_NODELIST is not set); start it in a script of sbatch or a shell of "
                                 "salloc, or use local, or ssh with launch.hosts"}});
}

}  // namespace

std::vector<std::string> nodes_of_slurm_job(const Variables& variables) {
  auto nodes = names_of_nodes(variables);
  const auto tasks = parse_task_counts(variables("SLURM_TASKS_PER_NODE").value_or(""));
  if (!tasks || tasks->size() != nodes.size()) return nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] += ":" + std::to_string((*tasks)[i]);
  return nodes;
}

void require_srun(const std::vector<std::string>& hosts, const Variables& variables) {
  const auto nodes = names_of_nodes(variables);
  for (const auto& host : hosts) {
    const std::string name = parse_host(host).name;
    if (is_this_host(name)) continue;
    if (std::ranges::find(nodes, name) == nodes.end()) {
      throw ConfigError({{.origin = "config",
                          .key = "launch.hosts",
                          .message = name + " is no node of this Slurm job, whose nodes are " + join(nodes, ", ") +
                                     "; name some of them, or leave launch.hosts out"}});
    }
    if (find_program("srun").empty()) {
      throw ConfigError({{.origin = "config",
                          .key = "launch.with",
                          .message = "srun starts an agent on " + name + ", but there is no srun on PATH (" +
                                     variables("PATH").value_or("") + "); add its folder"}});
    }
  }
}

}  // namespace phalanx
