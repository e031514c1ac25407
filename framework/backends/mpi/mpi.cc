#include <memory>

#include "framework/backends/mpi/communicator.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

struct MpiConfig {
  template <class V>
  void visit(V&) {}
};

// The store stays unused: MPI's launcher has connected the ranks.
const bool registered = Backends::global().add<MpiConfig>(
    "mpi", "ranks are processes on any hosts, started by mpirun or srun --mpi=pmix",
    [](const MpiConfig&, const World& world) {
      mpi::start(world.place, world.timeout);
      mpi::Group::Options options{.name = "world", .timeout = world.timeout, .local_ranks = world.place.local_size};
      return std::make_shared<mpi::MpiCommunicator>(mpi::duplicate_world(std::move(options)));
    });

}  // namespace
}  // namespace phalanx
