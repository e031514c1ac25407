// SPDX-License-Identifier: Apache-2.0
// Double binary tree broadcast, pipelined by chunks (double_tree.h has the source and the trees).
//
// The root is at the top of both trees and sends one half of the tensor through each.
//
// Steps: about 2 log2 P + C for C chunks of at most kChunkBytes. On the wire: each rank sends at most n bytes. For long
// tensors.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/double_tree.h"

namespace phalanx::collectives {
namespace {

void double_tree_broadcast(Communicator& group, const Operation& operation) {
  flow_down(group, flows_of(rooted_double_tree(group.rank(), group.size(), operation.root()), operation.output));
}

const bool double_tree_broadcast_registered = Algorithms::global().add(
    {.op = Op::kBroadcast,
     .name = "double_tree",
     .about = "about 2 log2 P + chunks steps, up to n bytes per rank, pipelined; for long tensors",
     .run = double_tree_broadcast});

}  // namespace
}  // namespace phalanx::collectives
