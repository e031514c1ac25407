// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/collectives.h"

#include <ATen/core/grad_mode.h>

#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/operations/dispatch.h"
#include "framework/comm/operations/divide_by_ranks.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::nccl {
namespace {

void require(ncclResult_t result) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw CommError(result == ncclRemoteError ? CommError::Kind::kPeerLost : CommError::Kind::kSystem,
                  std::string("NCCL says: ") + ncclGetErrorString(result));
}

// A group of NCCL calls that are issued together and may wait for each other.
class GroupCalls {
 public:
  GroupCalls() { require(ncclGroupStart()); }
  ~GroupCalls() {
    if (open_) (void)ncclGroupEnd();  // an exception is propagating
  }
  GroupCalls(const GroupCalls&) = delete;
  GroupCalls& operator=(const GroupCalls&) = delete;
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

void copy_own(at::Tensor to, const at::Tensor& from) {
  if (to.numel() > 0 && to.data_ptr() != from.data_ptr()) to.copy_(from.view({-1}), /*non_blocking=*/true);
}

void broadcast(const LaunchContext& context, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  require(ncclBroadcast(tensor.data_ptr(), tensor.data_ptr(), tensor.nbytes(), ncclInt8, operation.root(), context.comm,
                        context.stream));
}

void reduce(const LaunchContext& context, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  require(ncclReduce(tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), type_of(tensor),
                     reduction_of(operation.reduction), operation.root(), context.comm, context.stream));
}

void all_reduce(const LaunchContext& context, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  require(ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), type_of(tensor),
                        reduction_of(operation.reduction), context.comm, context.stream));
}

void reduce_scatter(const LaunchContext& context, const Operation& operation) {
  const at::Tensor &output = operation.output, &input = operation.input;
  const auto type = type_of(input);
  const auto reduction = reduction_of(operation.reduction);
  if (operation.input_counts.empty()) {
    require(ncclReduceScatter(input.data_ptr(), output.data_ptr(), output.numel(), type, reduction, context.comm,
                              context.stream));
  } else {
    const PartLayout parts(operation.input_counts, context.size, input.numel());
    GroupCalls calls;
    for (int root = 0; root < context.size; ++root) {
      if (parts.count(root) == 0) continue;
      const at::Tensor part = parts.of(input, root);
      require(ncclReduce(part.data_ptr(), root == context.rank ? output.data_ptr() : nullptr, part.numel(), type,
                         reduction, root, context.comm, context.stream));
    }
    calls.end();
  }
}

void all_gather(const LaunchContext& context, const Operation& operation) {
  const at::Tensor &output = operation.output, &input = operation.input;
  if (operation.input_counts.empty()) {
    require(ncclAllGather(input.data_ptr(), output.data_ptr(), input.nbytes(), ncclInt8, context.comm, context.stream));
    return;
  }
  const PartLayout parts(operation.input_counts, context.size, output.numel());
  GroupCalls calls;
  for (int root = 0; root < context.size; ++root) {
    if (parts.count(root) == 0) continue;
    const at::Tensor part = parts.of(output, root);
    const void* from = root == context.rank ? input.data_ptr() : part.data_ptr();
    require(ncclBroadcast(from, part.data_ptr(), part.nbytes(), ncclInt8, root, context.comm, context.stream));
  }
  calls.end();
}

void gather(const LaunchContext& context, const Operation& operation) {
  if (context.rank != operation.root()) return send_bytes(context, operation.input, operation.root());
  const PartLayout parts(operation.input_counts, context.size, operation.output.numel());
  GroupCalls calls;
  for (int rank = 0; rank < context.size; ++rank) {
    if (rank != context.rank) recv_bytes(context, parts.of(operation.output, rank), rank);
  }
  calls.end();
  copy_own(parts.of(operation.output, context.rank), operation.input);
}

void scatter(const LaunchContext& context, const Operation& operation) {
  if (context.rank != operation.root()) return recv_bytes(context, operation.output, operation.root());
  const PartLayout parts(operation.input_counts, context.size, operation.input.numel());
  GroupCalls calls;
  for (int rank = 0; rank < context.size; ++rank) {
    if (rank != context.rank) send_bytes(context, parts.of(operation.input, rank), rank);
  }
  calls.end();
  copy_own(operation.output.view({-1}), parts.of(operation.input, context.rank));
}

void all_to_all(const LaunchContext& context, const Operation& operation) {
  const PartLayout sources(operation.output_counts, context.size, operation.output.numel());
  const PartLayout targets(operation.input_counts, context.size, operation.input.numel());
  GroupCalls calls;
  for (int rank = 0; rank < context.size; ++rank) {
    if (rank == context.rank) continue;
    send_bytes(context, targets.of(operation.input, rank), rank);
    recv_bytes(context, sources.of(operation.output, rank), rank);
  }
  calls.end();
  copy_own(sources.of(operation.output, context.rank), targets.of(operation.input, context.rank));
}

// Calls the functions above with the arguments of an operation.
struct Collectives {
  const LaunchContext& context;
  const Operation& operation;

  void broadcast() const { nccl::broadcast(context, operation); }
  void reduce() const { nccl::reduce(context, operation); }
  void all_reduce() const { nccl::all_reduce(context, operation); }
  void reduce_scatter() const { nccl::reduce_scatter(context, operation); }
  void all_gather() const { nccl::all_gather(context, operation); }
  void gather() const { nccl::gather(context, operation); }
  void scatter() const { nccl::scatter(context, operation); }
  void all_to_all() const { nccl::all_to_all(context, operation); }
  void barrier() const { throw std::logic_error("barriers run in the host's half of a group"); }
};

bool reduces(Op op) { return op == Op::kReduce || op == Op::kAllReduce || op == Op::kReduceScatter; }

}  // namespace

void send_bytes(const LaunchContext& context, const at::Tensor& part, int peer) {
  if (part.numel() > 0) require(ncclSend(part.data_ptr(), part.nbytes(), ncclInt8, peer, context.comm, context.stream));
}

void recv_bytes(const LaunchContext& context, const at::Tensor& part, int peer) {
  if (part.numel() > 0) require(ncclRecv(part.data_ptr(), part.nbytes(), ncclInt8, peer, context.comm, context.stream));
}

void execute(const LaunchContext& context, const Operation& operation) {
  const at::NoGradGuard no_grad;
  dispatch_collective(operation.call.op, Collectives{context, operation});
}

void finish(const LaunchContext& context, const Operation& operation) {
  const bool has_result = operation.call.op != Op::kReduce || context.rank == operation.root();
  if (!reduces(operation.call.op) || operation.reduction.kind() != Reduction::kMean || !has_result) return;
  const at::NoGradGuard no_grad;
  if (context.size > 1) divide_by_ranks(operation.output, context.size);
}

}  // namespace phalanx::nccl
