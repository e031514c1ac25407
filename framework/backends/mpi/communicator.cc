#include "framework/backends/mpi/communicator.h"

#include <ATen/ops/zeros.h>

#include <chrono>
#include <stdexcept>
#include <utility>

#include "framework/backends/mpi/divide.h"
#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/base/error.h"

namespace phalanx::mpi {
namespace {

MPI_Op to_mpi(Reduction op) {
  switch (op) {
    case Reduction::kMin:
      return MPI_MIN;
    case Reduction::kMax:
      return MPI_MAX;
    case Reduction::kSum:
    case Reduction::kMean:
      break;
  }
  return MPI_SUM;
}

int start_barrier(const Group::Part&, MPI_Comm comm, MPI_Request* request) { return MPI_Ibarrier(comm, request); }

}  // namespace

Work MpiCommunicator::broadcast(at::Tensor tensor, int root) {
  check_tensor("broadcast", tensor);
  check_root("broadcast", root, size());
  return group_->launch("broadcast", std::move(tensor), [root](const auto& part, MPI_Comm comm, MPI_Request* request) {
    return MPI_Ibcast(part.data, part.count, part.type, root, comm, request);
  });
}

Work MpiCommunicator::all_reduce(at::Tensor tensor, Reduction op) {
  check_tensor("all_reduce", tensor);
  std::function<void()> finish;
  if (op == Reduction::kMean) finish = [tensor, size = size()] { divide(tensor, size); };
  const auto start = [op = to_mpi(op)](const auto& part, MPI_Comm comm, MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, part.data, part.count, part.type, op, comm, request);
  };
  return group_->launch("all_reduce", std::move(tensor), start, std::move(finish));
}

Work MpiCommunicator::barrier() { return group_->launch("barrier", {}, &start_barrier); }

// MPI_Comm_split has no deadline. Behind a barrier it needs none, since all ranks are about to call it.
CommunicatorPtr MpiCommunicator::split(int color, int key) {
  group_->launch("split", {}, &start_barrier).wait();
  MPI_Comm child = MPI_COMM_NULL;
  check(MPI_Comm_split(group_->comm(), color < 0 ? MPI_UNDEFINED : color, key, &child), "split of " + name());
  if (child == MPI_COMM_NULL) return nullptr;
  auto options = group_->options();
  options.name += "/" + std::to_string(color);
  return std::make_shared<MpiCommunicator>(std::make_shared<Group>(child, std::move(options)));
}

at::Tensor MpiCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  if (!options.device().is_cpu()) throw std::invalid_argument("allocate: only memory of the CPU is moved here");
  for (const auto size : sizes) {
    if (size < 0) throw std::invalid_argument("allocate: negative size");
  }
  return at::zeros(sizes, options);
}

std::shared_ptr<Group> duplicate_world(Group::Options options) {
  struct Pending {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  auto pending = std::make_unique<Pending>();
  const auto complete = [&] {
    int flag = 0;
    check(MPI_Test(&pending->request, &flag, MPI_STATUS_IGNORE), "MPI_Comm_idup");
    return flag != 0;
  };
  try {
    check(MPI_Comm_idup(MPI_COMM_WORLD, &pending->comm, &pending->request), "MPI_Comm_idup");
    direct::Waiter(options.local_ranks).wait(complete, [&](auto waited) {
      if (waited < options.timeout) return;
      throw CommError(CommError::Kind::kTimeout, "connecting " + options.name + ": not all ranks came in time");
    });
    check(MPI_Comm_set_errhandler(pending->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  } catch (...) {
    static_cast<void>(pending.release());  // MPI may still write to it
    give_up();
    throw;
  }
  return std::make_shared<Group>(pending->comm, std::move(options));
}

}  // namespace phalanx::mpi
