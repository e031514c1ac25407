// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/connect.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/backends/hybrid/communicator.h"
#include "framework/backends/hybrid/host_store.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/mesh/hierarchy.h"

namespace phalanx::hybrid {
namespace {

bool is_here(const std::string& backend) {
  const auto names = Backends::global().names();
  return std::ranges::find(names, backend) != names.end();
}

void check_backend(const char* key, const std::string& backend) {
  if (backend == "hybrid") throw ConfigError(std::string("backend hybrid: ") + key + " cannot be hybrid itself");
  if (is_here(backend)) return;
  throw ConfigError(std::string("backend hybrid: ") + key + ": \"" + backend + "\" is not one of " +
                    join(Backends::global().names(), ", "));
}

// Returns a backend for such a world, or an empty string if this program has none.
std::string backend_for(WorldKind world) {
  const auto names =
      Backends::global().names_where([&](const BackendTraits& traits) { return traits.automatic == world; });
  return names.empty() ? "" : names.front();
}

// MPI launchers set PMIx variables, even if torchrun's variables are set as well.
std::string choose_inter(const std::string& wanted, const ConnectOptions& options) {
  if (wanted != "auto") return wanted;
  const std::string by_mpi = backend_for(WorldKind::kHostsWithoutStore), by_store = backend_for(WorldKind::kHosts);
  if (environment("PMIX_RANK") && !by_mpi.empty()) return by_mpi;
  if (options.store && !by_store.empty()) return by_store;
  throw ConfigError(
      "backend hybrid: no backend connects the hosts: start the ranks with mpirun, or with a launcher that provides a "
      "store, such as torchrun");
}

CommunicatorPtr connect_all(const std::string& backend, const ConnectOptions& options) {
  ConnectOptions all = options;
  if (options.store) all.store = make_prefix_store("hybrid/inter", options.store);
  return Backends::Choice(backend).make(all);
}

CommunicatorPtr connect_host(const std::string& backend, const ConnectOptions& options, const Level& hosts) {
  const int rank = hosts.intra->rank();
  const int size = hosts.intra->size();
  HostStore meeting(hosts, options);
  auto connected =
      Backends::Choice(backend).make({.rank_info = {.rank = rank, .size = size, .local_rank = rank, .local_size = size},
                                      .store = meeting.store(),
                                      .timeout = options.timeout,
                                      .progress_thread = options.progress_thread});
  meeting.close(*hosts.intra);
  return connected;
}

}  // namespace

CommunicatorPtr connect(const Config& config, const ConnectOptions& options, const std::string& host) {
  const std::string inter = choose_inter(config.inter, options);
  check_backend("inter", inter);
  check_backend("intra", config.intra);
  const auto all = connect_all(inter, options);
  Level hosts = split_by_key("host", all, host);
  if (static_cast<int>(hosts.groups.size()) == all->size() && all->size() > 1) return all;
  hosts.intra = connect_host(config.intra, options, hosts);
  if (hosts.groups.size() == 1) return hosts.intra;
  return std::make_shared<HybridCommunicator>(std::move(hosts));
}

}  // namespace phalanx::hybrid
