// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>

#include <memory>
#include <utility>

#include "framework/backends/device/device_communicator.h"
#include "framework/backends/mpi/communicator.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/comm/backend.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx {
namespace {

struct MpiConfig {
  template <class V>
  void visit(V&) {}
};

// Returns true for operations that MPI performs on the memory of the tensors itself, without any code of ours that
// reads it.
bool runs_directly(const Operation& operation) {
  const auto combines = [&] {
    const auto kind = operation.reduction.kind();
    const auto dtype = operation.output.scalar_type();
    const bool number = dtype == at::kInt || dtype == at::kLong || dtype == at::kFloat || dtype == at::kDouble;
    return number && (kind == Reduction::kSum || kind == Reduction::kMin || kind == Reduction::kMax ||
                      (kind == Reduction::kMean && c10::isFloatingType(dtype)));
  };
  switch (operation.call.op) {
    case Op::kBroadcast:
      return true;
    case Op::kReduce:
    case Op::kAllReduce:
      return combines();
    case Op::kAllToAll:
      return operation.input_counts.empty() && operation.output_counts.empty();
    default:
      return false;
  }
}

// The store is not used, because MPI's launcher has connected the ranks.
CommunicatorPtr connect(ConnectOptions options) {
  MPI_Comm communicator = MPI_COMM_WORLD;
  if (options.mpi_communicator != nullptr) {
    communicator = *static_cast<const MPI_Comm*>(options.mpi_communicator);
    mpi::require_running();
    options.rank_info = mpi::rank_info_of(communicator);
  } else {
    mpi::start(options.rank_info, options.timeout);
  }
  auto group = mpi::duplicate(
      communicator, {.name = "world", .timeout = options.timeout, .local_ranks = options.rank_info.local_size});
  auto queue = std::make_shared<OperationQueue>();
  if (wants_progress_thread(options)) queue->start_progress_thread();
  auto world = std::make_shared<mpi::MpiCommunicator>(std::move(group), std::move(queue));
  if (!mpi::reads_device_memory()) return world;
  return std::make_shared<DeviceCommunicator>(std::move(world), c10::kCUDA,
                                              DeviceCommunicator::Paths{.direct = &runs_directly});
}

const bool mpi_registered =
    Backends::global().add<MpiConfig>("mpi", "ranks are processes on any hosts, started by mpirun or srun --mpi=pmix",
                                      BackendTraits{.mpi = true, .automatic = WorldKind::kHostsWithoutStore},
                                      [](const MpiConfig&, const ConnectOptions& options) { return connect(options); });

}  // namespace
}  // namespace phalanx
