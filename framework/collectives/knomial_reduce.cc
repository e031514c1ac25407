// SPDX-License-Identifier: Apache-2.0
// K-nomial tree reduce, of radix 4 and 8; of any other: knomial_reduce() in knomial.h.
//
// Source: the k-nomial broadcast (knomial_broadcast.cc), backwards.
//
// Each rank combines its tensor with those of its children, as they come, in order, and sends the whole to its parent.
//
// Steps: ceil(log_k P), each with up to k - 1 messages at once, and one more when the reduction is not commutative and
// the root is not 0. On the wire: each rank but the root sends n bytes; rank 0, too, in that case. Memory: up to 3 n.
// For short tensors. A subtree is a run of ranks, so reductions need not be commutative.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/knomial.h"

namespace phalanx::collectives {
namespace {

bool add_reduce(const char* name, int radix) {
  return Algorithms::global().add(
      {.op = Op::kReduce,
       .name = name,
       .about = "ceil(log_k P) steps of k - 1 messages at once, n bytes each; for short tensors",
       .run = [radix](Communicator& group, const Operation& operation) { knomial_reduce(group, operation, radix); }});
}

const bool knomial_reduce_registered = add_reduce("knomial_4", 4) && add_reduce("knomial_8", 8);

}  // namespace
}  // namespace phalanx::collectives
