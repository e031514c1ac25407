// SPDX-License-Identifier: Apache-2.0
// Recursive halving-doubling all-reduce, for any number of ranks (halving.h describes how).
//
// Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004: a reduce-scatter by
// recursive halving, then an all-gather by recursive doubling.
//
// Steps: 2 ceil(log2 P). On the wire: 2 n (P - 1) / P bytes per rank when P is a power of two, which is the least
// possible; otherwise the same on average, and at most n / 2 more on one rank. Memory: at most n. For tensors of medium
// length. Combines ranks out of order, so only commutative reductions are supported.
#include "framework/base/parts.h"
#include "framework/collectives/algorithm.h"
#include "framework/collectives/halving.h"
#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

void halving_doubling_all_reduce(Communicator& group, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  const PartLayout parts(nearly_equal_counts(tensor.numel(), group.size()), group.size(), tensor.numel());
  const at::Tensor own = parts.of(tensor, group.rank());
  copy(own, reduce_scatter_by_halving(group, tensor, parts, operation.reduction));
  finish(operation.reduction, own, group.size());
  all_gather_by_doubling(group, tensor, parts);
}

const bool halving_doubling_all_reduce_registered = Algorithms::global().add(
    {.op = Op::kAllReduce,
     .name = "halving_doubling",
     .about = "2 ceil(log2 P) steps, about 2 n (P - 1) / P bytes per rank; commutative; for medium length",
     .run = halving_doubling_all_reduce,
     .suits = suits_commutative});

}  // namespace
}  // namespace phalanx::collectives
