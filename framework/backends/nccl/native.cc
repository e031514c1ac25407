// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/native.h"

#include <c10/core/ScalarType.h>

namespace phalanx::nccl {
namespace {

bool reduces(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Byte:
    case c10::ScalarType::Char:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
      return true;
    default:
      return false;
  }
}

bool reduces(Reduction::Kind kind, c10::ScalarType dtype) {
  switch (kind) {
    case Reduction::kSum:
    case Reduction::kProduct:
    case Reduction::kMin:
    case Reduction::kMax:
      return reduces(dtype);
    case Reduction::kMean:
      return reduces(dtype) && c10::isFloatingType(dtype);
    default:
      return false;
  }
}

}  // namespace

bool has_native(const Operation& operation) {
  switch (operation.call.op) {
    case Op::kBroadcast:
    case Op::kAllGather:
    case Op::kGather:
    case Op::kScatter:
    case Op::kAllToAll:
      return true;
    case Op::kReduce:
    case Op::kAllReduce:
    case Op::kReduceScatter:
      return reduces(operation.reduction.kind(), operation.output.scalar_type());
    default:
      return false;
  }
}

}  // namespace phalanx::nccl
