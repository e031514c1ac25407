#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "framework/backends/direct/communicator.h"
#include "framework/backends/shm/memfd_fabric.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

std::string card_key(int rank) { return "shm/process/" + std::to_string(rank); }

// Every rank's process id, in rank order. Collective.
std::vector<int> introduce(const World& world) {
  world.store->set(card_key(world.place.rank), std::to_string(::getpid()) + " " + host_name());
  std::vector<int> processes;
  for (int rank = 0; rank < world.place.size; ++rank) {
    int process = 0;
    std::string host;
    std::istringstream(world.store->get(card_key(rank))) >> process >> host;
    if (host != host_name()) {
      throw ConfigError("backend shm connects ranks of one host, but rank " + std::to_string(world.place.rank) +
                        " is on " + host_name() + " and rank " + std::to_string(rank) + " on " + host +
                        "; use backend: mpi");
    }
    processes.push_back(process);
  }
  return processes;
}

struct ShmConfig {
  template <class V>
  void visit(V&) {}
};

const bool registered = Backends::global().add<ShmConfig>(
    "shm", "ranks are processes of one host that share memory", [](const ShmConfig&, const World& world) {
      auto fabric = std::make_unique<shm::MemfdFabric>(introduce(world));
      return direct::connect("shm", world, std::move(fabric));
    });

}  // namespace
}  // namespace phalanx
