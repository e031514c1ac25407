// SPDX-License-Identifier: Apache-2.0
// Chain broadcast, pipelined by chunks.
//
// Source: Watts and van de Geijn, "A pipelined broadcast for multidimensional meshes", Parallel Processing Letters 5
// (1995).
//
// The ranks form a chain that begins with the root and wraps around. Each rank forwards chunks while it receives the
// next ones.
//
// Steps: P - 2 + C for C chunks of at most kChunkBytes. On the wire: each rank but the last sends n bytes. For long
// tensors with many more chunks than ranks.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/binary_tree.h"
#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

void chain_broadcast(Communicator& group, const Operation& operation) {
  const int rank = group.rank(), ranks = group.size();
  const int place = mod(rank - operation.root(), ranks);
  Flow flow{.node = {}, .data = operation.output};
  if (place > 0) flow.node.parent = mod(rank - 1, ranks);
  if (place < ranks - 1) flow.node.upper = mod(rank + 1, ranks);
  flow_down(group, {&flow, 1});
}

const bool chain_broadcast_registered =
    Algorithms::global().add({.op = Op::kBroadcast,
                              .name = "chain",
                              .about = "P - 2 + chunks steps, n bytes per rank, pipelined; for long tensors",
                              .run = chain_broadcast});

}  // namespace
}  // namespace phalanx::collectives
