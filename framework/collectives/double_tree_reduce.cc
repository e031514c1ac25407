// SPDX-License-Identifier: Apache-2.0
// Double binary tree reduce, pipelined by chunks (double_tree.h has the source and the trees).
//
// The reverse of the double tree broadcast: the root is at the top of both trees, and one half of the tensor is reduced
// up each.
//
// Steps: about 2 log2 P + C for C chunks of at most kChunkBytes. On the wire: each rank but the root sends n bytes.
// Memory: 6 chunks. For long tensors. The nodes are numbered from the root on, not from rank 0, so only commutative
// reductions are supported.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/double_tree.h"

namespace phalanx::collectives {
namespace {

void double_tree_reduce(Communicator& group, const Operation& operation) {
  flow_up(group, flows_of(rooted_double_tree(group.rank(), group.size(), operation.root()), operation.output),
          operation.reduction);
}

const bool double_tree_reduce_registered = Algorithms::global().add(
    {.op = Op::kReduce,
     .name = "double_tree",
     .about = "about 2 log2 P + chunks steps, n bytes per rank, pipelined; commutative; for long tensors",
     .run = double_tree_reduce,
     .suits = suits_commutative});

}  // namespace
}  // namespace phalanx::collectives
