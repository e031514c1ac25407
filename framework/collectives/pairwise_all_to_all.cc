// SPDX-License-Identifier: Apache-2.0
// Pairwise exchange all-to-all, for even and uneven parts.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", Int. J. High
// Perform. Comput. Appl. 19 (2005), section on all-to-all.
//
// In step s = 1..P-1 each rank sends to rank + s and receives from rank - s, so that no rank receives from two ranks at
// once.
//
// Steps: P - 1. On the wire: each rank sends every part but its own once, n (P - 1) / P bytes when parts are equal,
// which is the least possible. For long tensors.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::collectives {
namespace {

void pairwise_all_to_all(Communicator& group, const Operation& operation) {
  const int rank = group.rank(), ranks = group.size();
  const PartLayout from(operation.output_counts, ranks, operation.output.numel());
  const PartLayout to(operation.input_counts, ranks, operation.input.numel());
  copy(from.of(operation.output, rank), to.of(operation.input, rank));
  for (int step = 1; step < ranks; ++step) {
    const int right = mod(rank + step, ranks), left = mod(rank - step, ranks);
    exchange(group, to.of(operation.input, right), right, from.of(operation.output, left), left);
  }
}

const bool pairwise_all_to_all_registered =
    Algorithms::global().add({.op = Op::kAllToAll,
                              .name = "pairwise",
                              .about = "P - 1 steps, n (P - 1) / P bytes per rank; for long tensors",
                              .run = pairwise_all_to_all});

}  // namespace
}  // namespace phalanx::collectives
