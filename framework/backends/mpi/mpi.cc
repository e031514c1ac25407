#include <memory>
#include <utility>

#include "framework/backends/mpi/communicator.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/comm/backend.h"
#include "framework/comm/operation_queue.h"

namespace phalanx {
namespace {

struct MpiConfig {
  template <class V>
  void visit(V&) {}
};

// The store stays unused: MPI's launcher has connected the ranks.
CommunicatorPtr connect(const ConnectOptions& options) {
  mpi::start(options.rank_info, options.timeout);
  auto group =
      mpi::duplicate_world({.name = "world", .timeout = options.timeout, .local_ranks = options.rank_info.local_size});
  auto queue = std::make_shared<OperationQueue>();
  if (wants_progress_thread(options)) queue->start_progress_thread();
  return std::make_shared<mpi::MpiCommunicator>(std::move(group), std::move(queue));
}

const bool registered =
    Backends::global().add<MpiConfig>("mpi", "ranks are processes on any hosts, started by mpirun or srun --mpi=pmix",
                                      [](const MpiConfig&, const ConnectOptions& options) { return connect(options); });

}  // namespace
}  // namespace phalanx
