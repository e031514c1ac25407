// SPDX-License-Identifier: Apache-2.0
// Binomial tree reduce.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", Int. J. High
// Perform. Comput. Appl. 19 (2005), section on reduce.
//
// The reverse of the binomial broadcast: in each step half of the remaining ranks send their partial result to the
// other half. This is the k-nomial tree of radix 2.
//
// Steps: ceil(log2 P), and one more when the reduction is not commutative and the root is not 0. On the wire: each rank
// but the root sends n bytes; in that case rank 0 sends n more. Memory: up to 3 n. For short tensors. A subtree is a
// run of ranks, so reductions need not be commutative.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/knomial.h"

namespace phalanx::collectives {
namespace {

const bool binomial_reduce_registered = Algorithms::global().add(
    {.op = Op::kReduce,
     .name = "binomial",
     .about = "ceil(log2 P) steps, n bytes per rank; for short tensors",
     .run = [](Communicator& group, const Operation& operation) { knomial_reduce(group, operation, 2); }});

}  // namespace
}  // namespace phalanx::collectives
