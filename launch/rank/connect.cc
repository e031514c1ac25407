// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/connect.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/address_for_peers.h"
#include "framework/comm/store/own_address.h"
#include "launch/rank/meet.h"
#include "launch/rank/same_start.h"

namespace phalanx {
namespace {

// Returns true if the ranks of one of these backends find each other through a store.
bool need_store(const std::vector<std::string>& backends, const LaunchEnvironment& launched) {
  return std::ranges::any_of(backends, [&](const auto& backend) {
    const auto traits = backend_traits(backend);
    return !traits.mpi && !(traits.mpi_without_store && launched.mpi && launched.rendezvous.empty());
  });
}

void refuse_threads(const std::vector<std::string>& backends, const LaunchEnvironment& launched) {
  const int size = launched.rank_info.size;
  const auto threads =
      std::ranges::find_if(backends, [](const auto& backend) { return backend_traits(backend).threads; });
  if (size == 1 || threads == backends.end()) return;
  throw ConfigError("backend " + *threads + " has all ranks in one process, but " + launched.launcher + " started " +
                    std::to_string(size) + " processes; use backend: auto");
}

// Returns e.g. "Open MPI v5.0.6" if the backend uses MPI. For the hybrid backend, that depends on the launcher.
std::string mpi_version(const std::string& backend) {
  const auto traits = backend_traits(backend);
  if (!traits.mpi && !traits.mpi_without_store) return "";
  for (const auto& name : Backends::global().names_where(&BackendTraits::mpi)) {
    const auto version = backend_traits(name).library_version;
    if (version != nullptr) return version();
  }
  return "";
}

// Returns the facts of this rank that all ranks must have in common. The version of MPI is one of them if MPI runs.
StartFacts start_facts(const std::vector<std::string>& backends, const std::string& config) {
  StartFacts facts{.host = host_name(), .versions = program_versions(), .config = config};
  for (const auto& backend : backends) {
    if (const std::string version = mpi_version(backend); !version.empty()) facts.versions["MPI"] = version;
  }
  return facts;
}

// Returns true if the ranks may have been started from different files. Forks of one process are equal.
bool may_differ(const LaunchEnvironment& launched) {
  return launched.rank_info.size > 1 && (launched.launcher != "local" || !launched.rank_info.one_host());
}

// Has the ranks meet if one of these backends needs a store, and finds the address of this rank. Otherwise the result
// has no store.
Rendezvous meet_for(const std::vector<std::string>& backends, const LaunchEnvironment& launched,
                    ConnectSettings& settings, OwnAddress& address) {
  const auto& rank_info = launched.rank_info;
  const std::string interface = wanted_interface(settings.interface);
  if (!rank_info.one_host()) use_interface(interface);
  if (!need_store(backends, launched)) return {};
  refuse_threads(backends, launched);
  Rendezvous met = settings.met ? *std::exchange(settings.met, {}) : meet(launched, interface, settings.timeout);
  if (may_differ(launched)) check_same_start(start_facts(backends, settings.config), rank_info, *met.store);
  if (!rank_info.one_host()) {
    address = find_own_address(*met.store, rank_info, met.host, interface);
    log_info() << "its peers reach it at " << address.describe();
  }
  return met;
}

// A check that the waits of connecting call, and that does nothing once this object is gone. Groups keep it for longer.
class WhileConnecting {
 public:
  explicit WhileConnecting(std::function<void()> check) : check_(std::move(check)) {}
  ~WhileConnecting() { *connecting_ = false; }
  WhileConnecting(const WhileConnecting&) = delete;
  WhileConnecting& operator=(const WhileConnecting&) = delete;

  std::function<void()> check() const {
    if (!check_) return {};
    return [check = check_, connecting = connecting_] {
      if (*connecting) check();
    };
  }

 private:
  std::function<void()> check_;
  std::shared_ptr<std::atomic<bool>> connecting_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace

std::string choose_backend(const std::string& wanted, const LaunchEnvironment& launched) {
  if (wanted != "auto") {
    const auto names = Backends::global().names();
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
  const WhileConnecting waits(std::move(settings.check));
  ConnectOptions options{.rank_info = rank_info,
                         .store = nullptr,
                         .timeout = settings.timeout,
                         .progress_thread = settings.progress_thread,
                         .check = waits.check(),
                         .numbers = std::move(settings.numbers),
                         .launched_by_mpi = launched.mpi,
                         .levels = std::move(settings.levels)};
  Rendezvous met = meet_for(chosen, launched, settings, options.address);
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
  if (!compared && may_differ(launched)) check_same_start(start_facts(chosen, settings.config), *worlds.front());
  return worlds;
}

CommunicatorPtr connect(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout,
                        std::optional<bool> progress_thread) {
  return connect_all({backend}, launched, {.timeout = timeout, .progress_thread = progress_thread}).front();
}

Topology world_topology(Communicator& world, const std::string& backend) {
  return detect_topology(world, backend, mpi_version(backend));
}

}  // namespace phalanx
