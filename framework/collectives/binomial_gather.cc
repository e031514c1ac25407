// SPDX-License-Identifier: Apache-2.0
// Binomial tree gather, for even and uneven parts.
//
// Source: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
// Concurrency Computat.: Pract. Exper. 19 (2007), section on short vectors (minimum spanning tree gather).
//
// Place 0 is the root, and places continue through the ranks, wrapping around. A subtree is a run of places: each rank
// gathers the parts of its subtree and sends them to its parent as one message. The root puts them in order of rank.
//
// Steps: ceil(log2 P). On the wire: each rank but the root sends the parts of its subtree, at most half of all. The
// total is (n / 2) log2 P bytes if P is a power of two and the whole tensor has n bytes. For short tensors: a direct
// gather moves fewer bytes, but in P - 1 messages to the root.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/knomial.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::collectives {
namespace {

void binomial_gather(Communicator& group, const Operation& operation) {
  const int ranks = group.size(), root = operation.root();
  const PartLayout parts(operation.input_counts, ranks, operation.input.numel() * ranks);
  const PartLayout placed = parts_by_place(parts, root);
  const int own = mod(group.rank() - root, ranks);
  const auto tree = knomial_place(own, ranks, 2);

  at::Tensor held = operation.input;
  if (!tree.children.empty()) {
    held = scratch(operation.input, placed.begin(tree.end) - placed.begin(own));
    copy(run_of(held, 0, placed.count(own)), operation.input);
  }
  std::vector<Work> works;
  for (const auto& child : tree.children) {
    const std::int64_t begin = placed.begin(child.place);
    works.push_back(start_recv(group, run_of(held, begin - placed.begin(own), placed.begin(child.end) - begin),
                               mod(child.place + root, ranks)));
  }
  wait_all(works);
  if (tree.parent >= 0) return send(group, held, mod(tree.parent + root, ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    copy(parts.of(operation.output, rank), placed.of(held, mod(rank - root, ranks)));
  }
}

const bool binomial_gather_registered =
    Algorithms::global().add({.op = Op::kGather,
                              .name = "binomial",
                              .about = "ceil(log2 P) steps, up to n / 2 bytes per rank; for short tensors",
                              .run = binomial_gather});

}  // namespace
}  // namespace phalanx::collectives
