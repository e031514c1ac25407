#include "framework/collectives/hierarchical/communicator.h"

#include <cstdint>
#include <string>
#include <utility>

#include "framework/collectives/hierarchical/all_gather.h"
#include "framework/collectives/hierarchical/all_reduce.h"
#include "framework/collectives/hierarchical/broadcast.h"
#include "framework/collectives/hierarchical/order.h"
#include "framework/collectives/hierarchical/reduce_scatter.h"
#include "framework/comm/arguments.h"
#include "framework/comm/part_layout.h"

namespace phalanx {

HierarchicalCommunicator::HierarchicalCommunicator(Level level, std::vector<Key> keys)
    : Decorator(level.scope),
      shared_(std::make_shared<Shared>(Shared{level, hierarchical::Scratch(level.intra)})),
      keys_(std::move(keys)) {}

Work HierarchicalCommunicator::broadcast(at::Tensor tensor, int root) {
  const Call call = check_broadcast(*this, tensor, root);
  return inner()->run(call, [shared = shared_, tensor = std::move(tensor), root] {
    hierarchical::broadcast(shared->level, tensor, root);
  });
}

Work HierarchicalCommunicator::all_reduce(at::Tensor tensor, Reduction op) {
  const Call call = check_all_reduce(tensor, op);
  if (!hierarchical::keeps_order(level(), op)) return inner()->all_reduce(std::move(tensor), std::move(op));
  return inner()->run(call, [shared = shared_, tensor = std::move(tensor), op = std::move(op)] {
    hierarchical::all_reduce(shared->level, tensor, op);
  });
}

Work HierarchicalCommunicator::reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) {
  const Call call = check_reduce_scatter(*this, output, input, op, counts);
  if (!hierarchical::keeps_order(level(), op)) {
    return inner()->reduce_scatter(std::move(output), std::move(input), std::move(op), counts);
  }
  return inner()->run(call, [shared = shared_, parts = PartLayout(counts, size(), input.numel()),
                             output = std::move(output), input = std::move(input),
                             op = std::move(op)] {
    hierarchical::reduce_scatter(shared->level, shared->scratch, output, input, op, parts);
  });
}

Work HierarchicalCommunicator::all_gather(at::Tensor output, at::Tensor input, Counts counts) {
  const Call call = check_all_gather(*this, output, input, counts);
  return inner()->run(call, [shared = shared_, parts = PartLayout(counts, size(), output.numel()),
                             output = std::move(output), input = std::move(input)] {
    hierarchical::all_gather(shared->level, shared->scratch, output, input, parts);
  });
}

// In its place among the operations: the group meets for it, and ranks may be behind with others of the scope.
at::Tensor HierarchicalCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  at::Tensor memory;
  inner()->run({.op = Op::kAllocate}, [&] { memory = level().intra->allocate(sizes, options); }).wait();
  return memory;
}

CommunicatorPtr HierarchicalCommunicator::wrap(CommunicatorPtr child) {
  return make_hierarchical(Hierarchy(std::move(child), keys_));
}

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

}  // namespace phalanx
