// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/collectives/algorithm.h"
#include "framework/comm/operations/part_layout.h"

/// K-nomial trees, shared by the binomial (radix 2) and k-nomial algorithms.
namespace phalanx::collectives {

/// The neighbors of a place in a k-nomial tree of places 0..P-1, rooted at place 0. Write a place in base `radix`: its
/// parent is the place with the lowest nonzero digit set to 0. The subtree of a place is a run of places that begins
/// with it. The height of the tree is ceil(log_radix P), and a place has at most radix - 1 children per level.
struct KnomialPlace {
  struct Child {
    int place;
    int end;  // its subtree is places [place, end)
  };
  int parent = -1;
  int end = 0;                  // the end of this place's own subtree
  std::vector<Child> children;  // in order of place: the lowest subtrees first
};
KnomialPlace knomial_place(int place, int ranks, int radix);

/// Returns `parts` in order of place, where place 0 is `root` and places continue through the ranks, wrapping around.
PartLayout parts_by_place(const PartLayout& parts, int root);

/// Broadcasts along the k-nomial tree in which place 0 is the root and places continue through the ranks, wrapping
/// around.
void knomial_broadcast(Communicator& group, const Operation& operation, int radix);

/// Reduces along the same tree if the reduction is commutative. Otherwise places are ranks and rank 0 sends the result
/// to the root, so that ranks are combined in order.
void knomial_reduce(Communicator& group, const Operation& operation, int radix);

}  // namespace phalanx::collectives
