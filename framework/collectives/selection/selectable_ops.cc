// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/selectable_ops.h"

#include <algorithm>
#include <array>

namespace phalanx {
namespace {

constexpr std::array kOps{Op::kBroadcast, Op::kReduce, Op::kAllReduce, Op::kReduceScatter,
                          Op::kAllGather, Op::kGather, Op::kScatter,   Op::kAllToAll};

}  // namespace

std::span<const Op> selectable_ops() { return kOps; }

bool is_selectable(Op op) { return std::ranges::find(kOps, op) != kOps.end(); }

std::vector<std::string> selectable_op_names() {
  std::vector<std::string> names;
  for (const Op op : kOps) names.emplace_back(to_string(op));
  return names;
}

Op selectable_op(const std::string& name) {
  for (const Op op : kOps) {
    if (to_string(op) == name) return op;
  }
  return Op::kNone;
}

}  // namespace phalanx
