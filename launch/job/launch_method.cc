// SPDX-License-Identifier: Apache-2.0
#include "launch/job/launch_method.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "launch/job/world.h"

namespace phalanx {
namespace {

constexpr int kMaxPerCore = 32;

// Returns the first backend of the config whose ranks MPI connects, or an empty string.
std::string backend_of_mpi(const ExperimentConfig& config) {
  auto backends = selected_backends(config);
  backends.insert(backends.begin(), config.backend);
  const auto found = std::ranges::find_if(backends, [](const auto& name) { return backend_traits(name).mpi; });
  return found == backends.end() ? "" : *found;
}

LaunchMethod possible_method(const ExperimentConfig& config) {
  const auto& launch = config.launch;
  const std::string mpi = backend_of_mpi(config);
  const auto without_mpirun = [&](LaunchMethod method) {
    if (mpi.empty()) return method;
    throw ConfigError("backend " + mpi + " needs processes that mpirun started; set launch.with: mpi (or auto)");
  };
  if (launch.by_agents()) return LaunchMethod::kAgents;  // check() refuses backends of MPI
  if (launch.with == "mpi" || !launch.hosts.empty()) return LaunchMethod::kMpirun;
  if (!mpi.empty() && launch.ranks > 1 && launch.with == "auto") return LaunchMethod::kMpirun;
  if (launch.ranks == 1 || backend_traits(config.backend).threads) return LaunchMethod::kThreads;
  return without_mpirun(LaunchMethod::kForks);
}

}  // namespace

LaunchMethod choose_launch_method(const ExperimentConfig& config) {
  const LaunchMethod method = possible_method(config);
  if (method == LaunchMethod::kMpirun || config.launch.mpirun_options.empty()) return method;
  throw ConfigError(
      "launch.mpirun_options: mpirun does not start these ranks; set launch.with: mpi, or leave them out");
}

void refuse_too_many_ranks(const LaunchConfig& launch) {
  const int cores = usable_cores();
  if (launch.oversubscribe || !launch.hosts.empty() || launch.ranks <= kMaxPerCore * cores) return;
  throw ConfigError({{.origin = "config",
                      .key = "launch.ranks",
                      .message = std::to_string(launch.ranks) + " ranks on " + std::to_string(cores) +
                                 (cores == 1 ? " core are" : " cores are") + " more than " +
                                 std::to_string(kMaxPerCore) + " per core; start at most " +
                                 std::to_string(kMaxPerCore * cores) + ", or set launch.oversubscribe: true"}});
}

}  // namespace phalanx
