// SPDX-License-Identifier: Apache-2.0
// Double binary tree all-reduce, pipelined by chunks (double_tree.h has the source and the trees).
//
// Each half of the tensor is reduced up its tree and then broadcast down the same tree.
//
// Steps: about 2 (2 log2 P + C) for C chunks of at most kChunkBytes. On the wire: each rank sends at most 2 n bytes.
// Memory: 6 chunks. It has the latency of a tree and nearly the bandwidth of a ring: for long tensors on many ranks. A
// subtree is a run of ranks, with its root between the two child subtrees, so reductions need not be commutative.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/double_tree.h"

namespace phalanx::collectives {
namespace {

void double_tree_all_reduce(Communicator& group, const Operation& operation) {
  const auto flows = flows_of(ordered_double_tree(group.rank(), group.size()), operation.output);
  flow_up(group, flows, operation.reduction);
  flow_down(group, flows);
}

const bool double_tree_all_reduce_registered = Algorithms::global().add(
    {.op = Op::kAllReduce,
     .name = "double_tree",
     .about = "about 4 log2 P steps, up to 2 n bytes per rank, pipelined; in rank order; for long tensors, many ranks",
     .run = double_tree_all_reduce});

}  // namespace
}  // namespace phalanx::collectives
