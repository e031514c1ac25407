// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/operation_memory.h"

namespace phalanx::recording {

at::Tensor input_of(const Operation& operation, int rank) {
  const bool root = operation.root() == rank;
  switch (operation.call.op) {
    case Op::kBroadcast:
      return root ? operation.output : at::Tensor();
    case Op::kReduce:
    case Op::kAllReduce:
    case Op::kSend:
      return operation.output;
    case Op::kReduceScatter:
    case Op::kAllGather:
    case Op::kGather:
    case Op::kAllToAll:
      return operation.input;
    case Op::kScatter:
      return root ? operation.input : at::Tensor();
    default:
      return {};
  }
}

at::Tensor result_of(const Operation& operation, int rank, bool measured) {
  const bool root = operation.root() == rank;
  switch (operation.call.op) {
    case Op::kBroadcast:
      return !root || measured ? operation.output : at::Tensor();
    case Op::kReduce:
    case Op::kGather:
      return root ? operation.output : at::Tensor();
    case Op::kAllReduce:
    case Op::kReduceScatter:
    case Op::kAllGather:
    case Op::kScatter:
    case Op::kAllToAll:
    case Op::kRecv:
      return operation.output;
    default:
      return {};
  }
}

}  // namespace phalanx::recording
