// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/collectives/algorithm.h"
#include "framework/comm/part_layout.h"

/// K-nomial trees: what the binomial (radix 2) and k-nomial algorithms share.
namespace phalanx::collectives {

/// A rank's place in a k-nomial tree of places 0..P-1, rooted at place 0: write the place in base `radix`; the parent
/// is the place with the lowest digit that is not 0 set to 0. The subtree of a place is a run of places that begins
/// with it. The tree is ceil(log_radix P) high, and a place has at most radix - 1 children a level.
struct KnomialPlace {
  struct Child {
    int place;
    int end;  // its subtree is places [place, end)
  };
  int parent = -1;
  int end = 0;                  // of its own subtree
  std::vector<Child> children;  // in order of place: the shortest subtrees first
};
KnomialPlace knomial_place(int place, int ranks, int radix);

/// The parts in order of place, where places are ranks counted from `root` on, around the end.
PartLayout parts_by_place(const PartLayout& parts, int root);

/// Places are ranks counted from the root on, around the end.
void knomial_broadcast(Communicator& group, const Operation& operation, int radix);

/// The same for commutative reductions. For others places are ranks, and rank 0 sends the result to the root, so that
/// ranks are combined in order.
void knomial_reduce(Communicator& group, const Operation& operation, int radix);

}  // namespace phalanx::collectives
