// SPDX-License-Identifier: Apache-2.0
// Bruck all-to-all, for even parts.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE Trans. Parallel Distrib. Syst. 8 (1997), section on index.
//
// Place i of each rank first holds its part for rank + i, which has to travel i ranks to the right. In step k the
// places with bit k set are packed into one message to rank + 2^k. In the end place i holds the part that came from
// rank - i.
//
// Steps: ceil(log2 P). On the wire: about (n / 2) log2 P bytes per rank: each place sends one part for every bit that
// is set in its number. Memory: 2 n. For short parts on many ranks, where the P - 1 messages of the pairwise algorithm
// cost more.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

void bruck_all_to_all(Communicator& group, const Operation& operation) {
  const int rank = group.rank(), ranks = group.size();
  const auto part = [&](const at::Tensor& tensor, int index) { return part_of(tensor, index, ranks); };
  const at::Tensor held = scratch(operation.input, operation.input.numel());
  for (int place = 0; place < ranks; ++place) {
    copy(part(held, place), part(operation.input, mod(rank + place, ranks)));
  }

  const std::int64_t elements = operation.input.numel() / ranks;
  const at::Tensor outgoing = scratch(held, ranks / 2 * elements), incoming = scratch(held, ranks / 2 * elements);
  for (int distance = 1; distance < ranks; distance *= 2) {
    std::vector<int> places;
    for (int place = 0; place < ranks; ++place) {
      if (place & distance) places.push_back(place);
    }
    const auto packed = [&](const at::Tensor& buffer, std::size_t index) {
      return run_of(buffer, static_cast<std::int64_t>(index) * elements, elements);
    };
    for (std::size_t i = 0; i < places.size(); ++i) copy(packed(outgoing, i), part(held, places[i]));
    const std::int64_t count = static_cast<std::int64_t>(places.size()) * elements;
    exchange(group, run_of(outgoing, 0, count), mod(rank + distance, ranks), run_of(incoming, 0, count),
             mod(rank - distance, ranks));
    for (std::size_t i = 0; i < places.size(); ++i) copy(part(held, places[i]), packed(incoming, i));
  }
  for (int place = 0; place < ranks; ++place) {
    copy(part(operation.output, mod(rank - place, ranks)), part(held, place));
  }
}

const bool bruck_all_to_all_registered = Algorithms::global().add(
    {.op = Op::kAllToAll,
     .name = "bruck",
     .about = "ceil(log2 P) steps, about (n / 2) log2 P bytes per rank; even parts; for short parts, many ranks",
     .run = bruck_all_to_all,
     .suits = [](const Communicator&, const Operation& operation) { return operation.input_counts.empty(); }});

}  // namespace
}  // namespace phalanx::collectives
