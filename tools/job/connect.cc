#include "tools/job/connect.h"

#include <algorithm>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"
#include "framework/comm/rendezvous.h"

namespace phalanx {
namespace {

// Where ranks of this backend meet; null for one that needs no store.
StorePtr meet(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout) {
  const int size = launched.place.size;
  if (backend == "mpi") return nullptr;
  if (size == 1) return make_hash_store(timeout);
  if (backend == "inproc") {
    throw ConfigError("backend inproc has all ranks in one process, but " + launched.launcher + " started " +
                      std::to_string(size) + " processes; use backend: auto");
  }
  if (launched.rendezvous.empty()) {
    throw ConfigError("backend " + backend + " has no way to bring together ranks of several hosts that " +
                      launched.launcher + " started; use backend: mpi");
  }
  return rendezvous(launched.rendezvous, timeout).store;
}

}  // namespace

std::string choose_backend(const std::string& wanted, const Place& place) {
  const auto names = Backends::global().names();
  if (wanted != "auto") {
    if (std::ranges::find(names, wanted) != names.end()) return wanted;
    const std::string near = nearest(wanted, names);
    throw ConfigError("backend: \"" + wanted + "\" is none of auto, " + join(names, ", ") +
                      (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  if (place.size == 1) return "inproc";
  return place.one_host() ? "shm" : "mpi";
}

CommunicatorPtr connect(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout) {
  const auto& place = launched.place;
  const std::string chosen = choose_backend(backend, place);
  log_info() << "rank " << place.rank << " of " << place.size << " on " << host_name() << ", started by "
             << launched.launcher << ", connects by " << chosen;
  auto store = meet(chosen, launched, timeout);
  auto world = Backends::Choice(chosen).make({place, store, timeout});
  // Rank 0 leaves the store last: the others may still read there what it hosts, and of several that leave a file at
  // the same time none would remove it.
  if (place.rank != 0) store.reset();
  world->barrier().wait();
  return world;
}

}  // namespace phalanx
