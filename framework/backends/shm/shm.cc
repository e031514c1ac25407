// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "framework/backends/shared_memory/communicator.h"
#include "framework/backends/shm/memfd_fabric.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/locality.h"

namespace phalanx {
namespace {

// The description of its process that each rank publishes for the others.
struct ProcessInfo {
  int process = 0;
  std::string host;
  std::string process_ids;  // process_ids_key(): the namespace in which `process` is valid
  bool fetches = false;     // the rank wants to fetch
  std::uint64_t word = 0;   // the address of kWord in that process
};

constexpr std::uint64_t kValue = 0x7068616c616e78;
const std::uint64_t kWord = kValue;  // an object with an address, for other ranks to read

void publish(Store& store, const std::string& what, int rank, const std::string& text) {
  store.set("shm/" + what + "/" + std::to_string(rank), text);
}

bool is_fetching_enabled() {
  const auto setting = environment("PHALANX_SHM_FETCH").value_or("on");
  if (setting != "on" && setting != "off")
    throw ConfigError("PHALANX_SHM_FETCH is \"" + setting + "\": it must be on or off");
  return setting == "on";
}

// Must be called before any use of the process id in `info`.
void require_same_host(int rank, int peer, const ProcessInfo& info) {
  const std::string ranks = "rank " + std::to_string(rank) + " is on " + host_name() + " and rank " +
                            std::to_string(peer) + " on " + info.host;
  if (info.host != host_name()) {
    throw ConfigError("backend shm connects ranks of one host, but " + ranks + "; use backend: auto");
  }
  if (info.process_ids == process_ids_key()) return;
  throw ConfigError("backend shm connects ranks that see each other's processes, but " + ranks +
                    ", in another container or on another machine of that name (boot and process ids are " +
                    process_ids_key() + " and " + info.process_ids +
                    "); use backend: gloo, or start all ranks in one container");
}

// Returns the process information of all ranks, in rank order. Collective.
std::vector<ProcessInfo> exchange_process_infos(const ConnectOptions& options) {
  std::ostringstream own;
  own << ::getpid() << ' ' << host_name() << ' ' << process_ids_key() << ' ' << is_fetching_enabled() << ' '
      << reinterpret_cast<std::uint64_t>(&kWord);
  publish(*options.store, "card", options.rank_info.rank, own.str());
  std::vector<ProcessInfo> infos;
  for (int rank = 0; rank < options.rank_info.size; ++rank) {
    ProcessInfo info;
    const auto text = options.store->get("shm/card/" + std::to_string(rank));
    std::istringstream(text) >> info.process >> info.host >> info.process_ids >> info.fetches >> info.word;
    require_same_host(options.rank_info.rank, rank, info);
    infos.push_back(info);
  }
  return infos;
}

// Returns true if every rank can fetch memory of every other. Collective.
bool all_can_fetch(const ConnectOptions& options, shm::MemfdFabric& fabric, const std::vector<ProcessInfo>& infos) {
  std::vector<shm::MemfdFabric::Word> words;
  for (const auto& info : infos) words.push_back({reinterpret_cast<const std::uint64_t*>(info.word), kValue});
  store_barrier(*options.store, "shm/readable", options.rank_info.size);
  const bool can_fetch = fabric.can_fetch(words);
  publish(*options.store, "fetches", options.rank_info.rank, can_fetch ? "yes" : "no");
  bool all = true;
  for (int rank = 0; rank < options.rank_info.size; ++rank) {
    all &= options.store->get("shm/fetches/" + std::to_string(rank)) == "yes";
  }
  return all;
}

std::unique_ptr<shm::MemfdFabric> make_fabric(const ConnectOptions& options) {
  const auto infos = exchange_process_infos(options);
  std::vector<int> processes;
  for (const auto& info : infos) processes.push_back(info.process);
  auto fabric = std::make_unique<shm::MemfdFabric>(processes);
  if (std::ranges::all_of(infos, &ProcessInfo::fetches)) {
    fabric->allow_peers_to_fetch();
    fabric->set_fetches(all_can_fetch(options, *fabric, infos));
  }
  return fabric;
}

struct ShmConfig {
  template <class V>
  void visit(V&) {}
};

const bool shm_registered = Backends::global().add<ShmConfig>(
    "shm", "ranks are processes of one host that share memory",
    BackendTraits{.shared = BackendTraits::Memory::kAll, .shrinks = true, .automatic = WorldKind::kOneHost},
    [](const ShmConfig&, const ConnectOptions& options) {
      return shared_memory::connect("shm", options, make_fabric(options));
    });

}  // namespace
}  // namespace phalanx
