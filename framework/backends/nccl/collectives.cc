// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/collectives.h"

#include <ATen/core/grad_mode.h>

#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/operations/dispatch.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::nccl {
namespace {

void require(ncclResult_t result) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw CommError(CommError::Kind::kSystem, std::string("NCCL says: ") + ncclGetErrorString(result));
}

// A group of NCCL calls that are issued together and may wait for each other.
class Together {
 public:
  Together() { require(ncclGroupStart()); }
  ~Together() {
    if (open_) (void)ncclGroupEnd();  // an exception is propagating
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  void end() {
    open_ = false;
    require(ncclGroupEnd());
  }

 private:
  bool open_ = true;
};

ncclDataType_t type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kByte:
      return ncclUint8;
    case at::kChar:
      return ncclInt8;
    case at::kInt:
      return ncclInt32;
    case at::kLong:
      return ncclInt64;
    case at::kHalf:
      return ncclFloat16;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    default:
      throw std::logic_error("NCCL does not reduce this dtype");
  }
}

ncclRedOp_t reduction_of(const Reduction& reduction) {
  switch (reduction.kind()) {
    case Reduction::kSum:
    case Reduction::kMean:  // divided afterwards, as in all backends
      return ncclSum;
    case Reduction::kProduct:
      return ncclProd;
    case Reduction::kMin:
      return ncclMin;
    case Reduction::kMax:
      return ncclMax;
    default:
      throw std::logic_error("NCCL has no such reduction");
  }
}

void finish(const Turn& turn, const Operation& operation, at::Tensor result) {
  if (operation.reduction.kind() == Reduction::kMean && turn.size > 1) result.div_(turn.size);
}

void copy_own(at::Tensor to, const at::Tensor& from) {
  if (to.numel() > 0 && to.data_ptr() != from.data_ptr()) to.copy_(from.view({-1}), /*non_blocking=*/true);
}

void send(const Turn& turn, const at::Tensor& part, int peer) {
  if (part.numel() > 0) require(ncclSend(part.data_ptr(), part.nbytes(), ncclInt8, peer, turn.comm, turn.stream));
}

void recv(const Turn& turn, const at::Tensor& part, int peer) {
  if (part.numel() > 0) require(ncclRecv(part.data_ptr(), part.nbytes(), ncclInt8, peer, turn.comm, turn.stream));
}

void broadcast(const Turn& turn, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  require(ncclBroadcast(tensor.data_ptr(), tensor.data_ptr(), tensor.nbytes(), ncclInt8, operation.root(), turn.comm,
                        turn.stream));
}

void reduce(const Turn& turn, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  require(ncclReduce(tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), type_of(tensor),
                     reduction_of(operation.reduction), operation.root(), turn.comm, turn.stream));
  if (turn.rank == operation.root()) finish(turn, operation, tensor);
}

void all_reduce(const Turn& turn, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  require(ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), type_of(tensor),
                        reduction_of(operation.reduction), turn.comm, turn.stream));
  finish(turn, operation, tensor);
}

void reduce_scatter(const Turn& turn, const Operation& operation) {
  const at::Tensor &output = operation.output, &input = operation.input;
  const auto type = type_of(input);
  const auto reduction = reduction_of(operation.reduction);
  if (operation.input_counts.empty()) {
    require(ncclReduceScatter(input.data_ptr(), output.data_ptr(), output.numel(), type, reduction, turn.comm,
                              turn.stream));
  } else {
    const PartLayout parts(operation.input_counts, turn.size, input.numel());
    Together together;
    for (int root = 0; root < turn.size; ++root) {
      if (parts.count(root) == 0) continue;
      const at::Tensor part = parts.of(input, root);
      require(ncclReduce(part.data_ptr(), root == turn.rank ? output.data_ptr() : nullptr, part.numel(), type,
                         reduction, root, turn.comm, turn.stream));
    }
    together.end();
  }
  finish(turn, operation, output);
}

void all_gather(const Turn& turn, const Operation& operation) {
  const at::Tensor &output = operation.output, &input = operation.input;
  if (operation.input_counts.empty()) {
    require(ncclAllGather(input.data_ptr(), output.data_ptr(), input.nbytes(), ncclInt8, turn.comm, turn.stream));
    return;
  }
  const PartLayout parts(operation.input_counts, turn.size, output.numel());
  Together together;
  for (int root = 0; root < turn.size; ++root) {
    if (parts.count(root) == 0) continue;
    const at::Tensor part = parts.of(output, root);
    const void* from = root == turn.rank ? input.data_ptr() : part.data_ptr();
    require(ncclBroadcast(from, part.data_ptr(), part.nbytes(), ncclInt8, root, turn.comm, turn.stream));
  }
  together.end();
}

void gather(const Turn& turn, const Operation& operation) {
  if (turn.rank != operation.root()) return send(turn, operation.input, operation.root());
  const PartLayout parts(operation.input_counts, turn.size, operation.output.numel());
  Together together;
  for (int rank = 0; rank < turn.size; ++rank) {
    if (rank != turn.rank) recv(turn, parts.of(operation.output, rank), rank);
  }
  together.end();
  copy_own(parts.of(operation.output, turn.rank), operation.input);
}

void scatter(const Turn& turn, const Operation& operation) {
  if (turn.rank != operation.root()) return recv(turn, operation.output, operation.root());
  const PartLayout parts(operation.input_counts, turn.size, operation.input.numel());
  Together together;
  for (int rank = 0; rank < turn.size; ++rank) {
    if (rank != turn.rank) send(turn, parts.of(operation.input, rank), rank);
  }
  together.end();
  copy_own(operation.output.view({-1}), parts.of(operation.input, turn.rank));
}

void all_to_all(const Turn& turn, const Operation& operation) {
  const PartLayout sources(operation.output_counts, turn.size, operation.output.numel());
  const PartLayout targets(operation.input_counts, turn.size, operation.input.numel());
  Together together;
  for (int rank = 0; rank < turn.size; ++rank) {
    if (rank == turn.rank) continue;
    send(turn, targets.of(operation.input, rank), rank);
    recv(turn, sources.of(operation.output, rank), rank);
  }
  together.end();
  copy_own(sources.of(operation.output, turn.rank), targets.of(operation.input, turn.rank));
}

// Calls the functions above with the arguments of an operation.
struct Collectives {
  const Turn& turn;
  const Operation& operation;

  void broadcast() const { nccl::broadcast(turn, operation); }
  void reduce() const { nccl::reduce(turn, operation); }
  void all_reduce() const { nccl::all_reduce(turn, operation); }
  void reduce_scatter() const { nccl::reduce_scatter(turn, operation); }
  void all_gather() const { nccl::all_gather(turn, operation); }
  void gather() const { nccl::gather(turn, operation); }
  void scatter() const { nccl::scatter(turn, operation); }
  void all_to_all() const { nccl::all_to_all(turn, operation); }
  void barrier() const { throw std::logic_error("barriers run in the host's half of a group"); }
};

}  // namespace

void execute(const Turn& turn, const Operation& operation) {
  const at::NoGradGuard no_grad;
  dispatch_collective(operation.call.op, Collectives{turn, operation});
}

}  // namespace phalanx::nccl
