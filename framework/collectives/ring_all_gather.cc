// SPDX-License-Identifier: Apache-2.0
// Ring all-gather, pipelined by chunks.
//
// Source: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
// Concurrency Computat.: Pract. Exper. 19 (2007), section on long vectors (bucket algorithm).
//
// In step s each rank sends part (rank - s) to the right and receives part (rank - s - 1) from the left, directly into
// its final place. Parts are cut into chunks of at most kChunkBytes; two chunks are in flight at a time.
//
// Steps: P - 1. On the wire: each rank sends every part but its right neighbor's once, n (P - 1) / P bytes when parts
// are equal, which is the least possible. For long tensors.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::collectives {
namespace {

void ring_all_gather(Communicator& group, const Operation& operation) {
  const int rank = group.rank(), ranks = group.size();
  const PartLayout parts(operation.input_counts, ranks, operation.output.numel());
  copy(parts.of(operation.output, rank), operation.input);
  std::int64_t longest = 0;
  for (int of = 0; of < ranks; ++of) longest = std::max(longest, parts.count(of));
  const std::int64_t chunks = chunks_of(operation.output, longest);

  const auto chunk = [&](std::int64_t item, int part) {
    return part_of(parts.of(operation.output, mod(part, ranks)), item % chunks, chunks);
  };
  const auto start = [&](std::int64_t item) {
    const int step = static_cast<int>(item / chunks);
    std::vector<Work> works;
    works.push_back(start_recv(group, chunk(item, rank - step - 1), mod(rank - 1, ranks)));
    works.push_back(start_send(group, chunk(item, rank - step), mod(rank + 1, ranks)));
    return works;
  };
  pipeline((ranks - 1) * chunks, std::min<std::int64_t>(2, chunks), start, [](std::int64_t) {});
}

const bool ring_all_gather_registered =
    Algorithms::global().add({.op = Op::kAllGather,
                              .name = "ring",
                              .about = "P - 1 steps, n (P - 1) / P bytes per rank, pipelined; for long tensors",
                              .run = ring_all_gather});

}  // namespace
}  // namespace phalanx::collectives
