// SPDX-License-Identifier: Apache-2.0
// K-nomial tree broadcast with radix 4 and 8. For other radices see knomial_broadcast() in knomial.h.
//
// Source: Wilkins et al., "Generalized collective algorithms for the exascale era", IEEE CLUSTER 2023, section on
// k-nomial trees. The binomial tree is the special case of radix 2.
//
// Each rank receives the whole tensor from its parent and sends it to all its children at once, in the order of
// decreasing height of their subtrees.
//
// Steps: ceil(log_k P), each with up to k - 1 messages at once. On the wire: at most n (k - 1) ceil(log_k P) bytes from
// the root, n (P - 1) in total. For short tensors, if a rank can start several messages in the time that one message
// takes.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/knomial.h"

namespace phalanx::collectives {
namespace {

bool add_broadcast(const char* name, int radix) {
  return Algorithms::global().add(
      {.op = Op::kBroadcast,
       .name = name,
       .about = "ceil(log_k P) steps of k - 1 messages at once, n bytes each; for short tensors",
       .run = [radix](Communicator& group, const Operation& operation) {
         knomial_broadcast(group, operation, radix);
       }});
}

const bool knomial_broadcast_registered = add_broadcast("knomial_4", 4) && add_broadcast("knomial_8", 8);

}  // namespace
}  // namespace phalanx::collectives
