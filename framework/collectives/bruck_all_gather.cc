// SPDX-License-Identifier: Apache-2.0
// Bruck all-gather, for even and uneven parts.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE Trans. Parallel Distrib. Syst. 8 (1997), section on concatenation.
//
// Each rank holds parts rank, rank + 1, ... in this order. With distance d = 1, 2, 4, ... it sends all parts that it
// holds, at most P - d, to rank - d, and appends the parts that it receives from rank + d. Finally it puts the parts in
// order of rank.
//
// Steps: ceil(log2 P), for any P. On the wire: each rank sends P - 1 parts, n (P - 1) / P bytes when parts are equal,
// which is the least possible. Memory: n. For short tensors: it needs the fewest possible steps, at the cost of two
// copies.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/knomial.h"
#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

void bruck_all_gather(Communicator& group, const Operation& operation) {
  const int rank = group.rank(), ranks = group.size();
  const PartLayout parts(operation.input_counts, ranks, operation.output.numel());
  const PartLayout placed = parts_by_place(parts, rank);
  const auto places = [&](const at::Tensor& held, int begin, int count) {
    return run_of(held, placed.begin(begin), placed.begin(begin + count) - placed.begin(begin));
  };

  const at::Tensor held = scratch(operation.input, placed.total());
  copy(placed.of(held, 0), operation.input);
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int count = std::min(distance, ranks - distance);
    exchange(group, places(held, 0, count), mod(rank - distance, ranks), places(held, distance, count),
             mod(rank + distance, ranks));
  }
  for (int place = 0; place < ranks; ++place) {
    copy(parts.of(operation.output, mod(rank + place, ranks)), placed.of(held, place));
  }
}

const bool bruck_all_gather_registered =
    Algorithms::global().add({.op = Op::kAllGather,
                              .name = "bruck",
                              .about = "ceil(log2 P) steps, n (P - 1) / P bytes per rank; for short tensors",
                              .run = bruck_all_gather});

}  // namespace
}  // namespace phalanx::collectives
