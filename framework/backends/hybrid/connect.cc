#include "framework/backends/hybrid/connect.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/backends/hybrid/communicator.h"
#include "framework/backends/hybrid/host_store.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/hierarchy.h"

namespace phalanx::hybrid {
namespace {

bool is_here(const std::string& backend) {
  const auto names = Backends::global().names();
  return std::ranges::find(names, backend) != names.end();
}

void check_backend(const char* key, const std::string& backend) {
  if (backend == "hybrid") throw ConfigError(std::string("backend hybrid: ") + key + " cannot be hybrid itself");
  if (is_here(backend)) return;
  throw ConfigError(std::string("backend hybrid: ") + key + ": \"" + backend + "\" is none of " +
                    join(Backends::global().names(), ", "));
}

// What starts processes of MPI says so by PMIx, also where torchrun's variables are set beside.
std::string choose_inter(const std::string& wanted, const World& world) {
  if (wanted != "auto") return wanted;
  if (environment("PMIX_RANK") && is_here("mpi")) return "mpi";
  if (world.store && is_here("gloo")) return "gloo";
  throw ConfigError(
      "backend hybrid: nothing connects the hosts: start the ranks by mpirun, or where they find a store, by torchrun");
}

CommunicatorPtr connect_all(const std::string& backend, const World& world) {
  World all = world;
  if (world.store) all.store = make_prefix_store("hybrid/inter", world.store);
  return Backends::Choice(backend).make(all);
}

CommunicatorPtr connect_host(const std::string& backend, const World& world, const Level& hosts) {
  const int rank = hosts.intra->rank();
  const int size = hosts.intra->size();
  HostStore meeting(hosts, world);
  auto connected =
      Backends::Choice(backend).make({.place = {.rank = rank, .size = size, .local_rank = rank, .local_size = size},
                                      .store = meeting.store(),
                                      .timeout = world.timeout,
                                      .progress_thread = world.progress_thread});
  meeting.close(*hosts.intra);
  return connected;
}

}  // namespace

CommunicatorPtr connect(const Config& config, const World& world, const std::string& host) {
  const std::string inter = choose_inter(config.inter, world);
  check_backend("inter", inter);
  check_backend("intra", config.intra);
  const auto all = connect_all(inter, world);
  Level hosts = divide("host", all, host);
  if (static_cast<int>(hosts.groups.size()) == all->size() && all->size() > 1) return all;
  hosts.intra = connect_host(config.intra, world, hosts);
  if (hosts.groups.size() == 1) return hosts.intra;
  return std::make_shared<HybridCommunicator>(std::move(hosts));
}

}  // namespace phalanx::hybrid
