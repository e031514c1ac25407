// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/planned_traffic.h"

#include <algorithm>
#include <cstdint>

#include "engine/plan/plannable.h"
#include "engine/strategies/strategy_traits.h"

namespace phalanx {
namespace {

constexpr AxisSet kSameExperts{Axis::kData, Axis::kContext};
constexpr std::int64_t kNumber = 8;  // bytes of a number that ranks agree on

std::vector<Op> operations_of_bucket(StepTraffic traffic) {
  switch (traffic) {
    case StepTraffic::kOther:
    case StepTraffic::kNone:
      return {};
    case StepTraffic::kAllReduce:
      return {Op::kAllReduce};
    case StepTraffic::kReduceScatterAllGather:
      return {Op::kReduceScatter, Op::kAllGather};
    case StepTraffic::kReduceScatterSharedCopy:
      return {Op::kReduceScatter};
  }
  return {};
}

const MeshShape& shape_of(const Replica& replica) { return replica.mesh().shape(); }

AxisBits axes_of(const Replica& replica, const DataParallelGroup& group) {
  return axes_of(shape_of(replica), group.group == replica.mesh().replicas() ? kReplicaAxes : kSameExperts);
}

// Adds the sums by which the norm of all gradients is found.
void add_norm(OperationCounts& counts, const Replica& replica) {
  const MeshShape& shape = shape_of(replica);
  const bool experts = shape[Axis::kExpert] > 1;
  const std::int64_t sums = experts ? 2 * kNumber : kNumber;
  if (replica.settings.strategy.traits().shards_update) {
    const auto axes_of_all = axes_of_replicas(replica);
    const auto each = axes_of_all.size() == 1 ? sums : kNumber;
    for (const auto axes : axes_of_all) add(counts, axes, Op::kAllReduce, each);
  }
  add(counts, axes_of(shape, kModelAxes), Op::kAllReduce, sums);
  if (experts) add(counts, axes_of(shape, {Axis::kExpert}), Op::kAllReduce, kNumber);
}

// Adds the vote on stopping.
void add_vote(OperationCounts& counts, const MeshShape& shape) {
  const auto all = axes_of(shape, AxisSet::all());
  if (shape[Axis::kPipe] == 1) return add(counts, all, Op::kAllReduce, kNumber);
  for (int peer = 1; peer < shape.product(); ++peer) {
    for (const auto op : {Op::kSend, Op::kRecv}) add(counts, all, op, kNumber);
  }
}

}  // namespace

std::vector<AxisBits> axes_of_replicas(const Replica& replica) {
  std::vector<AxisBits> all;
  if (replica.settings.strategy.traits().shards_values) {  // there are no copies
    all.push_back(axes_of(shape_of(replica), kReplicaAxes));
    if (shape_of(replica)[Axis::kExpert] > 1) all.push_back(axes_of(shape_of(replica), kSameExperts));
  }
  for (const auto& group : replica.copied_groups()) all.push_back(axes_of(replica, group));
  return all;
}

OperationCounts gradient_operations(const Replica& replica) {
  const auto& strategy = replica.settings.strategy;
  check_plannable(strategy);
  const auto traits = strategy.traits();
  OperationCounts counts;
  for (const auto& group : replica.copied_groups()) {
    const auto axes = axes_of(replica, group);
    for (const auto& bucket : group.parameters.buckets()) {
      const auto bytes = static_cast<std::int64_t>(bucket.gradients.nbytes());
      for (const auto op : operations_of_bucket(traits.traffic)) add(counts, axes, op, bytes);
    }
    if (traits.traffic == StepTraffic::kReduceScatterSharedCopy) add(counts, axes, Op::kBarrier, 0);
  }
  return counts;
}

OperationCounts control_operations(const Replica& replica, const TrainConfig& train, bool weighted) {
  OperationCounts counts;
  if (train.clip_norm > 0) add_norm(counts, replica);
  // The vote on unused parameters. A plan has no unused ones.
  for (const auto axes : axes_of_replicas(replica)) add(counts, axes, Op::kAllReduce, kNumber);
  if (weighted) add(counts, axes_of(shape_of(replica), kBatchAxes), Op::kAllReduce, kNumber);
  add_vote(counts, shape_of(replica));
  return counts;
}

StepOperations separate(const OperationCounts& all, const Replica& replica) {
  StepOperations step;
  const auto axes = axes_of_replicas(replica);
  for (const auto& [kind, count] : all) {
    const bool moves_slices = kind.op == Op::kReduceScatter || kind.op == Op::kAllGather || kind.op == Op::kBarrier;
    const bool among_replicas = std::ranges::find(axes, kind.axes) != axes.end();
    (moves_slices && among_replicas ? step.gradients : step.layers)[kind] = count;
  }
  return step;
}

}  // namespace phalanx
