// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "framework/comm/backend.h"
#include "framework/comm/device_kind.h"
#include "framework/comm/launch/init_method.h"
#include "launch/rank/connect.h"
#include "launch/rank/local_rank.h"
#include "phalanx/world.h"

namespace phalanx {
namespace {

LaunchEnvironment find_place(const InitOptions& options) {
  const auto found = detect_launch_environment(
      InitMethod{.url = options.init_method, .rank = options.rank, .world_size = options.world_size});
  return found.value_or(LaunchEnvironment{.launcher = "no launcher", .rank_info = {}});
}

CommunicatorPtr connect_over_mpi(const InitOptions& options) {
  if (options.backend != "auto" && options.backend != "mpi") {
    throw ConfigError("InitOptions: the ranks of an MPI communicator are connected by backend mpi, not by " +
                      options.backend);
  }
  return Backends::Choice(choose_backend("mpi", {}))
      .make(ConnectOptions{.rank_info = {},
                           .store = nullptr,
                           .timeout = options.timeout,
                           .mpi_communicator = options.mpi_communicator,
                           .mpi_standard_abi = options.mpi_standard_abi});
}

// Returns the device of this rank for a backend that takes tensors of such devices.
c10::Device device_for(const std::string& kind, int local_rank) {
  if (kind == "cpu") return c10::kCPU;
  const auto devices = DeviceKinds::Choice(kind).make();
  return {devices->type(), static_cast<c10::DeviceIndex>(local_rank % devices->count())};
}

}  // namespace

World init(const InitOptions& options) {
  if (options.timeout.count() <= 0) throw ConfigError("InitOptions: the timeout must be positive");
  if (options.mpi_communicator != nullptr) return World(connect_over_mpi(options));
  ResolvedLaunch resolved = resolve_local_rank(find_place(options), options.timeout);
  const std::string backend = choose_backend(options.backend, resolved.launched);
  auto communicators =
      connect_all({backend}, resolved.launched,
                  {.timeout = options.timeout, .interface = options.interface, .met = std::move(resolved.met)});
  return World(std::move(communicators.front()),
               device_for(backend_traits(backend).device, resolved.launched.rank_info.local_rank));
}

}  // namespace phalanx
