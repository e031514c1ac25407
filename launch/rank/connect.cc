// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/connect.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"
#include "framework/comm/store/rendezvous.h"

namespace phalanx {
namespace {

// Returns the store through which ranks of these backends find each other, or null if they need none.
StorePtr find_store(const std::vector<std::string>& backends, const LaunchEnvironment& launched, Seconds timeout,
                    const StorePtr& rendezvous_store) {
  const int size = launched.rank_info.size;
  const auto needs_store = std::ranges::find_if(backends, [&](const auto& backend) {
    const auto traits = backend_traits(backend);
    return !traits.mpi && !(traits.mpi_without_store && launched.rendezvous.empty());
  });
  if (needs_store == backends.end()) return nullptr;
  if (size == 1) return make_hash_store(timeout);
  const auto threads =
      std::ranges::find_if(backends, [](const auto& backend) { return backend_traits(backend).threads; });
  if (threads != backends.end()) {
    throw ConfigError("backend " + *threads + " has all ranks in one process, but " + launched.launcher + " started " +
                      std::to_string(size) + " processes; use backend: auto");
  }
  if (launched.rendezvous.empty()) {
    throw ConfigError("backend " + *needs_store + " cannot connect ranks of several hosts that " + launched.launcher +
                      " started; use backend: mpi");
  }
  return rendezvous_store ? rendezvous_store : rendezvous(launched.rendezvous, timeout).store;
}

// Returns true if the backend uses MPI. For the hybrid backend, that depends on the launcher.
bool uses_mpi(const std::string& backend) {
  const auto traits = backend_traits(backend);
  int running = 0;
  return (traits.mpi || traits.mpi_without_store) && MPI_Initialized(&running) == MPI_SUCCESS && running != 0;
}

// Returns e.g. "Open MPI v5.0.6" from "Open MPI v5.0.6, package: ..., ident: ...".
std::string mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string whole(text.data(), static_cast<std::size_t>(length));
  return whole.substr(0, whole.find(','));
}

}  // namespace

std::string choose_backend(const std::string& wanted, const LaunchEnvironment& launched) {
  const auto names = Backends::global().names();
  if (wanted != "auto") {
    if (std::ranges::find(names, wanted) != names.end()) return wanted;
    const std::string near = nearest(wanted, names);
    throw ConfigError("backend: \"" + wanted + "\" is not one of auto, " + join(names, ", ") +
                      (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  if (launched.rank_info.size == 1) return automatic_backend(WorldKind::kOneRank);
  if (launched.rank_info.one_host()) return automatic_backend(WorldKind::kOneHost);
  return automatic_backend(launched.rendezvous.empty() ? WorldKind::kHostsWithoutStore : WorldKind::kHosts);
}

std::vector<CommunicatorPtr> connect_all(const std::vector<std::string>& backends, const LaunchEnvironment& launched,
                                         Seconds timeout, std::optional<bool> progress_thread,
                                         StorePtr rendezvous_store) {
  const auto& rank_info = launched.rank_info;
  std::vector<std::string> chosen;
  for (const auto& backend : backends) chosen.push_back(choose_backend(backend, launched));
  log_info() << "rank " << rank_info.rank << " of " << rank_info.size << " on " << host_name() << ", started by "
             << launched.launcher << ", connects by " << join(chosen, ", ");
  auto store = find_store(chosen, launched, timeout, std::exchange(rendezvous_store, nullptr));
  std::vector<CommunicatorPtr> worlds;
  for (const auto& backend : chosen) {
    const auto part = store ? make_prefix_store(backend, store) : nullptr;
    worlds.push_back(Backends::Choice(backend).make({rank_info, part, timeout, progress_thread}));
  }
  // Rank 0 leaves the store last: others may still be reading the store that it hosts, and if several ranks leave a
  // file store at the same time, none of them removes the file.
  if (rank_info.rank != 0) store.reset();
  for (const auto& world : worlds) world->barrier().wait();
  return worlds;
}

CommunicatorPtr connect(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout,
                        std::optional<bool> progress_thread) {
  return connect_all({backend}, launched, timeout, progress_thread).front();
}

Topology world_topology(Communicator& world, const std::string& backend) {
  return detect_topology(world, backend, uses_mpi(backend) ? mpi_version() : "");
}

}  // namespace phalanx
