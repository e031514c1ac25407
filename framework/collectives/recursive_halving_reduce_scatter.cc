// SPDX-License-Identifier: Apache-2.0
// Recursive halving reduce-scatter, for any number of ranks (halving.h has the source).
//
// Partners half a group apart send each other their data for the half of the parts that belongs to the partner's half
// of the group, and combine the received data. Then each half of the group goes on by itself.
//
// Steps: ceil(log2 P). On the wire: each rank sends every part but its own once, n (P - 1) / P bytes when parts are
// equal, which is the least possible. Memory: at most as much as the input. For tensors of medium length. Combines
// ranks out of order, so only commutative reductions are supported.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/halving.h"
#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

void recursive_halving_reduce_scatter(Communicator& group, const Operation& operation) {
  const PartLayout parts(operation.input_counts, group.size(), operation.input.numel());
  copy(operation.output, reduce_scatter_by_halving(group, operation.input, parts, operation.reduction));
  finish(operation.reduction, operation.output, group.size());
}

const bool recursive_halving_reduce_scatter_registered = Algorithms::global().add(
    {.op = Op::kReduceScatter,
     .name = "recursive_halving",
     .about = "ceil(log2 P) steps, n (P - 1) / P bytes per rank; commutative; for medium length",
     .run = recursive_halving_reduce_scatter,
     .suits = suits_commutative});

}  // namespace
}  // namespace phalanx::collectives
