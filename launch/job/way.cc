// SPDX-License-Identifier: Apache-2.0
#include "launch/job/way.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "launch/job/world.h"

namespace phalanx {
namespace {

constexpr int kMostPerCore = 32;

// Returns the first backend of the config whose ranks MPI connects, or an empty string.
std::string backend_of_mpi(const ExperimentConfig& config) {
  auto backends = selected_backends(config);
  backends.insert(backends.begin(), config.backend);
  const auto found = std::ranges::find_if(backends, [](const auto& name) { return backend_traits(name).mpi; });
  return found == backends.end() ? "" : *found;
}

}  // namespace

Way choose_way(const ExperimentConfig& config) {
  const auto& launch = config.launch;
  const std::string mpi = backend_of_mpi(config);
  if (launch.with == "mpi" || !launch.hosts.empty()) return Way::kMpirun;
  if (!mpi.empty() && launch.ranks > 1 && launch.with == "auto") return Way::kMpirun;
  if (launch.ranks == 1 || backend_traits(config.backend).threads) return Way::kThreads;
  if (mpi.empty()) return Way::kForks;
  throw ConfigError("backend " + mpi + " needs processes that mpirun started; set launch.with: mpi (or auto)");
}

void refuse_too_many_ranks(const LaunchConfig& launch) {
  const int cores = usable_cores();
  if (launch.oversubscribe || !launch.hosts.empty() || launch.ranks <= kMostPerCore * cores) return;
  throw ConfigError({{.origin = "config",
                      .key = "launch.ranks",
                      .message = std::to_string(launch.ranks) + " ranks on " + std::to_string(cores) +
                                 (cores == 1 ? " core are" : " cores are") + " more than " +
                                 std::to_string(kMostPerCore) + " per core; start at most " +
                                 std::to_string(kMostPerCore * cores) + ", or set launch.oversubscribe: true"}});
}

}  // namespace phalanx
