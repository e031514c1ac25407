// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/hierarchical/hierarchical_communicator.h"

#include <cstdint>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/collectives/hierarchical/collectives.h"
#include "framework/collectives/hierarchical/order.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx {
namespace {

void by_groups(const Level& level, hierarchical::Scratch& scratch, const Operation& operation) {
  const auto parts = [&] { return PartLayout(operation.input_counts, level.scope->size(), operation.call.elements); };
  switch (operation.call.op) {
    case Op::kBroadcast:
      return hierarchical::broadcast(level, operation.output, operation.root());
    case Op::kAllReduce:
      return hierarchical::all_reduce(level, operation.output, operation.reduction);
    case Op::kReduceScatter:
      return hierarchical::reduce_scatter(level, scratch, operation.output, operation.input, operation.reduction,
                                          parts());
    default:
      return hierarchical::all_gather(level, scratch, operation.output, operation.input, parts());
  }
}

}  // namespace

HierarchicalCommunicator::HierarchicalCommunicator(Level level, std::vector<Key> keys)
    : Decorator(level.scope),
      shared_(std::make_shared<Shared>(Shared{level, hierarchical::Scratch(level.intra)})),
      keys_(std::move(keys)) {}

bool HierarchicalCommunicator::goes_by_groups(const Operation& operation) const {
  switch (operation.call.op) {
    case Op::kBroadcast:
    case Op::kAllGather:
      return true;
    case Op::kAllReduce:
    case Op::kReduceScatter:
      return hierarchical::keeps_order(level(), operation.reduction);
    default:
      return false;
  }
}

Work HierarchicalCommunicator::launch(Operation operation) {
  if (!goes_by_groups(operation)) return Decorator::launch(std::move(operation));
  const Call call = operation.call;
  return inner()->run(call, [shared = shared_, operation = std::move(operation)] {
    if (!shared->has_links) {
      throw CommError(CommError::Kind::kPeerLost, "this rank has left " + shared->level.scope->name());
    }
    by_groups(shared->level, shared->scratch, operation);
  });
}

// Allocates in the order of operations, because allocation is collective over the group, and some ranks may still be
// behind with operations of the scope. Memory that all ranks share comes from the scope.
at::Tensor HierarchicalCommunicator::do_allocate(const Allocation& allocation) {
  if (allocation.shared()) return Decorator::do_allocate(allocation);
  at::Tensor memory;
  inner()->run(allocation.call, [&] { memory = level().intra->do_allocate(allocation); }).wait();
  return memory;
}

// The operation that waits for the earlier ones fails if the group is broken.
void HierarchicalCommunicator::leave_links() {
  try {
    inner()->run({.op = Op::kCustom}, [] {}).wait();
  } catch (const CommError&) {
  }
  shared_->has_links = false;
  shared_->level.inter = nullptr;
}

CommunicatorPtr HierarchicalCommunicator::wrap(CommunicatorPtr child) { return divide(std::move(child), keys_); }

CommunicatorPtr make_hierarchical(const Hierarchy& hierarchy) {
  CommunicatorPtr below = hierarchy.level(hierarchy.depth()).intra;
  std::vector<Key> keys;
  for (int number = hierarchy.depth(); number > 0; --number) {
    Level level = hierarchy.level(number);
    keys.insert(keys.begin(), Key{level.name, std::to_string(level.group)});
    const bool plain = below == level.intra;
    const auto groups = static_cast<int>(level.groups.size());
    if (groups == level.scope->size() || (groups == 1 && plain)) {
      below = level.scope;
    } else if (groups > 1) {
      level.intra = below;
      below = std::make_shared<HierarchicalCommunicator>(std::move(level), keys);
    }
  }
  return below;
}

CommunicatorPtr divide(CommunicatorPtr world, const std::vector<Key>& keys) {
  return keys.empty() ? world : make_hierarchical(Hierarchy(std::move(world), keys));
}

}  // namespace phalanx
