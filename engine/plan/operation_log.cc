// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/operation_log.h"

#include <utility>

#include "framework/base/text.h"

namespace phalanx {

AxisBits axes_of(const MeshShape& shape, const std::vector<int>& ranks) {
  AxisBits axes = 0;
  std::int64_t stride = shape.product();
  for (int axis = 0; axis < kAxes; ++axis) {
    const auto size = shape.sizes[axis];
    stride /= size;
    for (const auto rank : ranks) {
      if (rank / stride % size != ranks[0] / stride % size) axes |= 1U << axis;
    }
  }
  return axes;
}

std::string axes_name(AxisBits axes) {
  std::vector<std::string> names;
  for (int axis = 0; axis < kAxes; ++axis) {
    if ((axes >> axis & 1U) != 0) names.emplace_back(to_string(static_cast<Axis>(axis)));
  }
  return join(names, "+");
}

std::int64_t ranks_along(const MeshShape& shape, AxisBits axes) {
  std::int64_t ranks = 1;
  for (int axis = 0; axis < kAxes; ++axis) {
    if ((axes >> axis & 1U) != 0) ranks *= shape.sizes[axis];
  }
  return ranks;
}

std::int64_t bytes_of(const Operation& operation) {
  switch (operation.call.op) {
    case Op::kBarrier:
    case Op::kCustom:
      return 0;
    case Op::kReduceScatter:
    case Op::kAllToAll:
      return static_cast<std::int64_t>(operation.input.nbytes());
    case Op::kGather:
    case Op::kScatter:
      return operation.call.elements * static_cast<std::int64_t>(c10::elementSize(operation.call.dtype));
    default:
      return static_cast<std::int64_t>(operation.output.nbytes());
  }
}

double wire_bytes(Op op, std::int64_t ranks, std::int64_t bytes) {
  const double others = ranks < 2 ? 0 : static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const auto all = static_cast<double>(bytes);
  switch (op) {
    case Op::kAllReduce:
      return 2 * others * all;
    case Op::kReduceScatter:
    case Op::kAllGather:
    case Op::kAllToAll:
      return others * all;
    case Op::kBarrier:
      return 0;
    default:
      return ranks < 2 ? 0 : all;
  }
}

void OperationLog::add(AxisBits axes, const Operation& operation) { add(axes, operation.call.op, bytes_of(operation)); }

void OperationLog::add(AxisBits axes, Op op, std::int64_t bytes) {
  if (axes == 0) return;
  std::lock_guard lock(mutex_);
  auto& entry = counts_[{axes, op}];
  ++entry.count;
  entry.bytes += bytes;
}

OperationCounts OperationLog::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(counts_, {});
}

}  // namespace phalanx
