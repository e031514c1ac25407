// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/part_layout.h"

/// Recursive halving and doubling for any number of ranks.
///
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", Int. J. High
/// Perform. Comput. Appl. 19 (2005), sections on all-gather and reduce-scatter, for powers of two. Other numbers of
/// ranks need no extra steps and no extra bytes here: an interval of ranks is halved as evenly as it goes, and where
/// its left half is one rank longer, that rank's partner is the first rank of the right half, which so has two. A rank
/// has two partners at most once, since it is the first of an interval from then on.
namespace phalanx::collectives {

/// What a rank does when its interval of ranks is halved: it goes on with the parts of its own half.
struct Halving {
  struct Interval {
    int begin = 0, end = 0;
  };
  Interval keep;          // this rank's half
  Interval give;          // the other half
  int to = -1;            // the partner that gets what this rank has of `give`
  std::vector<int> from;  // 0 to 2 partners that have something of `keep`
};

/// The halvings of a rank, from the whole group down to itself; ceil(log2 P) of them, or one less.
std::vector<Halving> halvings(int rank, int ranks);

/// Combines all ranks' inputs and returns this rank's part of it, without Reduction::finish(): memory of its own, or a
/// view of `input` in a group of one. Each rank sends every part but its own once. Combines out of order: commutative
/// reductions only.
at::Tensor reduce_scatter_by_halving(Communicator& group, const at::Tensor& input, const PartLayout& parts,
                                     const Reduction& op);

/// The way back: this rank's part of `output` to all ranks. Each rank receives every part but its own once; on average
/// it sends as much, and at most half of the tensor more.
void all_gather_by_doubling(Communicator& group, const at::Tensor& output, const PartLayout& parts);

}  // namespace phalanx::collectives
