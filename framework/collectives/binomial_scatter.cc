// SPDX-License-Identifier: Apache-2.0
// Binomial tree scatter, for even and uneven parts.
//
// Source: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
// Concurrency Computat.: Pract. Exper. 19 (2007), section on short vectors (minimum spanning tree scatter).
//
// Place 0 is the root, and places continue through the ranks, wrapping around. A subtree is a run of places: each rank
// receives the parts of its subtree as one message from its parent, and sends each child the parts of the child's
// subtree.
//
// Steps: ceil(log2 P). On the wire: each rank but the root receives the parts of its subtree, at most half of all. The
// total is (n / 2) log2 P bytes if P is a power of two and the whole tensor has n bytes. For short tensors: a direct
// scatter moves fewer bytes, but in P - 1 messages from the root.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/knomial.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::collectives {
namespace {

// Returns the root's input with its parts in order of place.
at::Tensor placed_input(const Operation& operation, const PartLayout& parts, const PartLayout& placed) {
  const at::Tensor result = scratch(operation.input, placed.total());
  for (int rank = 0; rank < parts.ranks(); ++rank) {
    copy(placed.of(result, mod(rank - operation.root(), parts.ranks())), parts.of(operation.input, rank));
  }
  return result;
}

void binomial_scatter(Communicator& group, const Operation& operation) {
  const int ranks = group.size(), root = operation.root();
  const PartLayout parts(operation.input_counts, ranks, operation.output.numel() * ranks);
  const PartLayout placed = parts_by_place(parts, root);
  const int own = mod(group.rank() - root, ranks);
  const auto tree = knomial_place(own, ranks, 2);

  at::Tensor held = operation.output;
  if (tree.parent < 0) {
    held = placed_input(operation, parts, placed);
  } else {
    if (!tree.children.empty()) held = scratch(operation.output, placed.begin(tree.end) - placed.begin(own));
    recv(group, held, mod(tree.parent + root, ranks));
  }
  std::vector<Work> works;  // the highest subtrees first, because they take the longest
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
    const std::int64_t begin = placed.begin(child->place);
    works.push_back(start_send(group, run_of(held, begin - placed.begin(own), placed.begin(child->end) - begin),
                               mod(child->place + root, ranks)));
  }
  wait_all(works);
  copy(operation.output, run_of(held, 0, placed.count(own)));
}

const bool binomial_scatter_registered =
    Algorithms::global().add({.op = Op::kScatter,
                              .name = "binomial",
                              .about = "ceil(log2 P) steps, up to n / 2 bytes per rank; for short tensors",
                              .run = binomial_scatter});

}  // namespace
}  // namespace phalanx::collectives
