// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "framework/backends/device/device_communicator.h"
#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/broadcast_text.h"
#include "framework/backends/mpi/builds.h"
#include "framework/backends/mpi/communicator.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/backends/mpi/vendor.h"
#include "framework/comm/backend.h"
#include "framework/comm/operations/operation_queue.h"

// Adds this build of the backend to the program.
namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

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
    require_running();
    options.rank_info = rank_info_of(communicator);
  } else {
    start(options.rank_info, options.timeout);
  }
  auto group = duplicate(communicator,
                         {.name = "world", .timeout = options.timeout, .local_ranks = options.rank_info.local_size});
  auto queue = std::make_shared<OperationQueue>();
  if (wants_progress_thread(options)) queue->start_progress_thread();
  auto world = std::make_shared<MpiCommunicator>(std::move(group), std::move(queue));
  if (!reads_memory_of_devices()) return world;
  return std::make_shared<DeviceCommunicator>(std::move(world), c10::kCUDA,
                                              DeviceCommunicator::Paths{.direct = &runs_directly});
}

#ifdef PHALANX_MPI_STANDARD_ABI
constexpr Kind kKind = Kind::kStandardAbi;
#else
constexpr Kind kKind = Kind::kOpenMpi;
#endif

const bool build_added =
    add_build(kKind, {.connect = &connect, .broadcast = &broadcast_text, .library_version = &version_if_running});

}  // namespace
}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
