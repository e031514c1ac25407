// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/operation_counts.h"

#include <ATen/ops/zeros.h>

#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr int kOps = static_cast<int>(Op::kCustom) + 1;

}  // namespace

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

AxisBits axes_of(const MeshShape& shape, AxisSet axes) {
  AxisBits bits = 0;
  for (int axis = 0; axis < kAxes; ++axis) {
    if (axes.has(static_cast<Axis>(axis)) && shape.sizes[axis] > 1) bits |= 1U << axis;
  }
  return bits;
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

void add(OperationCounts& counts, AxisBits axes, Op op, std::int64_t bytes) {
  if (axes == 0) return;
  auto& entry = counts[{axes, op}];
  ++entry.count;
  entry.bytes += bytes;
}

void add(OperationCounts& counts, const OperationCounts& more) {
  for (const auto& [kind, count] : more) {
    counts[kind].count += count.count;
    counts[kind].bytes += count.bytes;
  }
}

std::string differences(const MeshShape& shape, const OperationCounts& planned, const OperationCounts& seen) {
  OperationCounts kinds = planned;
  kinds.insert(seen.begin(), seen.end());
  std::string text;
  const auto of = [](const OperationCounts& counts, const OperationKind& kind) {
    const auto found = counts.find(kind);
    return found == counts.end() ? OperationCount{} : found->second;
  };
  for (const auto& [kind, unused] : kinds) {
    const auto plan = of(planned, kind), real = of(seen, kind);
    if (plan == real) continue;
    text += std::string(to_string(kind.op)) + " along " + axes_name(kind.axes) + " (" +
            std::to_string(ranks_along(shape, kind.axes)) + " ranks): planned " + std::to_string(plan.count) + " of " +
            std::to_string(plan.bytes) + " bytes in all, seen " + std::to_string(real.count) + " of " +
            std::to_string(real.bytes) + "\n";
  }
  return text;
}

OperationCounts over_ranks(const OperationCounts& counts, Communicator& world) {
  const at::Tensor sums = at::zeros({(1 << kAxes) * kOps * 2}, at::kLong);
  auto* const numbers = sums.mutable_data_ptr<std::int64_t>();
  const auto place = [](const OperationKind& kind) { return (kind.axes * kOps + static_cast<unsigned>(kind.op)) * 2; };
  for (const auto& [kind, count] : counts) {
    numbers[place(kind)] = count.count;
    numbers[place(kind) + 1] = count.bytes;
  }
  world.all_reduce(sums, Reduction::kSum).wait();
  OperationCounts all;
  for (AxisBits axes = 0; axes < 1U << kAxes; ++axes) {
    for (int op = 0; op < kOps; ++op) {
      const OperationKind kind{axes, static_cast<Op>(op)};
      const OperationCount count{numbers[place(kind)], numbers[place(kind) + 1]};
      if (count.count > 0) all[kind] = count;
    }
  }
  return all;
}

}  // namespace phalanx
