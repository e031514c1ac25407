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

// Returns the first backend with this trait, or an empty string if this program has none.
std::string backend_with(bool BackendTraits::* trait) {
  const auto names = Backends::global().names_where(trait);
  return names.empty() ? "" : names.front();
}

// Open MPI's launcher sets variables of PMIx for the ranks that it starts, Hydra of MPICH and Intel MPI sets others.
bool launched_by_mpi(const ConnectOptions& options) {
  const bool hydra = environment("PMI_RANK") && environment("MPI_LOCALRANKID");
  return options.launched_by_mpi.value_or(hydra || environment("PMIX_RANK").has_value());
}

std::string choose_inter(const std::string& wanted, const ConnectOptions& options) {
  if (wanted != "auto") return wanted;
  const std::string by_mpi = backend_with(&BackendTraits::mpi), by_store = backend_with(&BackendTraits::connects_hosts);
  if (launched_by_mpi(options) && !by_mpi.empty()) return by_mpi;
  if (options.store && !by_store.empty()) return by_store;
  throw ConfigError(
      "backend hybrid: no backend connects the hosts: start the ranks with mpirun or mpiexec, or with a launcher that "
      "provides a "
      "store, such as torchrun");
}

CommunicatorPtr connect_all(const std::string& backend, const ConnectOptions& options) {
  ConnectOptions all = options;
  if (options.store) all.store = make_prefix_store("hybrid/inter", options.store);
  return Backends::Choice(backend).make(all);
}

// Returns the numbers in the job of the ranks of this host.
std::vector<int> numbers_of_host(const std::vector<int>& numbers, const Level& hosts) {
  std::vector<int> own = hosts.groups.at(static_cast<std::size_t>(hosts.group));
  if (numbers.empty()) return own;
  for (int& rank : own) rank = numbers.at(static_cast<std::size_t>(rank));
  return own;
}

CommunicatorPtr connect_host(const std::string& backend, const ConnectOptions& options, const Level& hosts) {
  const int rank = hosts.intra->rank();
  const int size = hosts.intra->size();
  HostStore meeting(hosts, options);
  auto connected =
      Backends::Choice(backend).make({.rank_info = {.rank = rank, .size = size, .local_rank = rank, .local_size = size},
                                      .store = meeting.store(),
                                      .timeout = options.timeout,
                                      .progress_thread = options.progress_thread,
                                      .check = options.check,
                                      .numbers = numbers_of_host(options.numbers, hosts)});
  meeting.close(*hosts.intra);
  return connected;
}

// The keys of the levels above and below hosts.
struct OtherLevels {
  std::vector<Key> above, below;
};

OtherLevels levels_without_host(const std::vector<Key>& levels) {
  const auto host = std::ranges::find(levels, kHostLevel, &Key::name);
  if (levels.empty()) return {};
  if (host == levels.end()) {
    throw ConfigError(
        "backend hybrid divides the ranks by host, but framework.topology.levels has no level host; "
        "insert it before the levels inside hosts");
  }
  return {{levels.begin(), host}, {host + 1, levels.end()}};
}

}  // namespace

CommunicatorPtr connect(const Config& config, const ConnectOptions& options, const std::string& host) {
  const std::string inter = choose_inter(config.inter, options);
  check_backend("inter", inter);
  check_backend("intra", config.intra);
  OtherLevels levels = levels_without_host(options.levels);
  const auto all = connect_all(inter, options);
  Level hosts = split_by_key(kHostLevel, all, host);
  if (static_cast<int>(hosts.groups.size()) == all->size() && all->size() > 1) return divide(all, levels.above);
  hosts.intra = divide(connect_host(config.intra, options, hosts), levels.below);
  if (hosts.groups.size() == 1) return hosts.intra;
  return std::make_shared<HybridCommunicator>(std::move(hosts), std::move(levels.above));
}

}  // namespace phalanx::hybrid
