// SPDX-License-Identifier: Apache-2.0
// Binomial tree broadcast.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", Int. J. High
// Perform. Comput. Appl. 19 (2005), section on broadcast.
//
// In each step every rank that has the tensor sends it to one more rank, which doubles their number. This is the
// k-nomial tree of radix 2.
//
// Steps: ceil(log2 P). On the wire: at most n ceil(log2 P) bytes from the root, n (P - 1) in total. For short tensors.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/knomial.h"

namespace phalanx::collectives {
namespace {

const bool binomial_broadcast_registered = Algorithms::global().add(
    {.op = Op::kBroadcast,
     .name = "binomial",
     .about = "ceil(log2 P) steps, up to n ceil(log2 P) bytes from the root; for short tensors",
     .run = [](Communicator& group, const Operation& operation) { knomial_broadcast(group, operation, 2); }});

}  // namespace
}  // namespace phalanx::collectives
