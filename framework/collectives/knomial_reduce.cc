// SPDX-License-Identifier: Apache-2.0
// K-nomial tree reduce with radix 4 and 8. For other radices see knomial_reduce() in knomial.h.
//
// Source: the same as for the k-nomial broadcast (knomial_broadcast.cc), of which this is the reverse.
//
// Each rank combines its tensor with the results of its children, in order as they arrive, and sends the result to its
// parent.
//
// Steps: ceil(log_k P), each with up to k - 1 messages at once, and one more when the reduction is not commutative and
// the root is not 0. On the wire: each rank but the root sends n bytes; in that case rank 0 sends n more. Memory: up to
// 3 n. For short tensors. A subtree is a run of ranks, so reductions need not be commutative.
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
