// SPDX-License-Identifier: Apache-2.0
// Recursive doubling all-gather, for any number of ranks (halving.h has the source).
//
// Neighbors exchange their parts, then pairs of ranks exchange all parts that they have, then groups of four, and so
// on.
//
// Steps: ceil(log2 P). On the wire: each rank receives every part but its own once. It sends n (P - 1) / P bytes when P
// is a power of two and parts are equal, otherwise the same on average, and at most n / 2 more on one rank. For short
// tensors.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/halving.h"
#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

void recursive_doubling_all_gather(Communicator& group, const Operation& operation) {
  const PartLayout parts(operation.input_counts, group.size(), operation.output.numel());
  copy(parts.of(operation.output, group.rank()), operation.input);
  all_gather_by_doubling(group, operation.output, parts);
}

const bool recursive_doubling_all_gather_registered =
    Algorithms::global().add({.op = Op::kAllGather,
                              .name = "recursive_doubling",
                              .about = "ceil(log2 P) steps, about n (P - 1) / P bytes per rank; for short tensors",
                              .run = recursive_doubling_all_gather});

}  // namespace
}  // namespace phalanx::collectives
