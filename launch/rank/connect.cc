// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/connect.h"

#include <mpi.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <array>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/base/version.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/address_for_peers.h"
#include "framework/comm/store/own_address.h"
#include "launch/rank/meet.h"
#include "launch/rank/same_start.h"

namespace phalanx {
namespace {

// Returns the first of these backends whose ranks find each other through a store, or an empty string.
std::string backend_with_store(const std::vector<std::string>& backends, const LaunchEnvironment& launched) {
  const auto found = std::ranges::find_if(backends, [&](const auto& backend) {
    const auto traits = backend_traits(backend);
    return !traits.mpi && !(traits.mpi_without_store && launched.mpi && launched.rendezvous.empty());
  });
  return found == backends.end() ? "" : *found;
}

void refuse_threads(const std::vector<std::string>& backends, const LaunchEnvironment& launched) {
  const int size = launched.rank_info.size;
  const auto threads =
      std::ranges::find_if(backends, [](const auto& backend) { return backend_traits(backend).threads; });
  if (size == 1 || threads == backends.end()) return;
  throw ConfigError("backend " + *threads + " has all ranks in one process, but " + launched.launcher + " started " +
                    std::to_string(size) + " processes; use backend: auto");
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

// Returns the facts of this rank that all ranks must have in common. Versions of MPI matter only if MPI connects them.
StartFacts start_facts(const std::vector<std::string>& backends, const LaunchEnvironment& launched,
                       const std::string& config) {
  StartFacts facts{
      .host = host_name(), .versions = {{"Phalanx", kVersion}, {"LibTorch", TORCH_VERSION}}, .config = config};
  const bool by_mpi =
      launched.mpi || std::ranges::any_of(backends, [](const auto& backend) { return backend_traits(backend).mpi; });
  if (by_mpi) facts.versions["MPI"] = mpi_version();
  return facts;
}

// Returns true if the ranks may have been started from different files. Forks of one process are equal.
bool may_differ(const LaunchEnvironment& launched) {
  return launched.rank_info.size > 1 && launched.launcher != "local";
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
  return automatic_backend(launched.rank_info.one_host() ? WorldKind::kOneHost : WorldKind::kHosts);
}

std::vector<CommunicatorPtr> connect_all(const std::vector<std::string>& backends, const LaunchEnvironment& launched,
                                         ConnectSettings settings) {
  const auto& rank_info = launched.rank_info;
  std::vector<std::string> chosen;
  for (const auto& backend : backends) chosen.push_back(choose_backend(backend, launched));
  log_info() << "rank " << rank_info.rank << " of " << rank_info.size << " on " << host_name() << ", started by "
             << launched.launcher << ", connects by " << join(chosen, ", ");
  const std::string interface = wanted_interface(settings.interface);
  if (!rank_info.one_host()) use_interface(interface);
  const StartFacts facts = start_facts(chosen, launched, settings.config);

  Rendezvous met;
  ConnectOptions options{.rank_info = rank_info,
                         .store = nullptr,
                         .timeout = settings.timeout,
                         .progress_thread = settings.progress_thread,
                         .launched_by_mpi = launched.mpi};
  if (!backend_with_store(chosen, launched).empty()) {
    refuse_threads(chosen, launched);
    met = settings.met ? *std::exchange(settings.met, {}) : meet(launched, interface, settings.timeout);
    if (may_differ(launched)) check_same_start(facts, rank_info, *met.store);
    if (!rank_info.one_host()) {
      options.address = find_own_address(*met.store, rank_info, met.host, interface);
      log_info() << "its peers reach it at " << options.address.describe();
    }
  }
  std::vector<CommunicatorPtr> worlds;
  for (const auto& backend : chosen) {
    options.store = met.store ? make_prefix_store(backend, met.store) : nullptr;
    worlds.push_back(Backends::Choice(backend).make(options));
  }
  // Rank 0 leaves the store last: others may still be reading the store that it hosts, and if several ranks leave a
  // file store at the same time, none of them removes the file.
  const bool compared = met.store != nullptr;
  options.store.reset();
  if (rank_info.rank != 0) met.store.reset();
  for (const auto& world : worlds) world->barrier().wait();
  if (!compared && may_differ(launched)) check_same_start(facts, *worlds.front());
  return worlds;
}

CommunicatorPtr connect(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout,
                        std::optional<bool> progress_thread) {
  return connect_all({backend}, launched, {.timeout = timeout, .progress_thread = progress_thread}).front();
}

Topology world_topology(Communicator& world, const std::string& backend) {
  return detect_topology(world, backend, uses_mpi(backend) ? mpi_version() : "");
}

}  // namespace phalanx
