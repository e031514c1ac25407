// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/part_layout.h"

/// Recursive halving and doubling for any number of ranks.
///
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", Int. J. High
/// Perform. Comput. Appl. 19 (2005), sections on all-gather and reduce-scatter, for powers of two. Other numbers of
/// ranks need no extra steps and no extra bytes here. An interval of ranks is halved as evenly as possible. If its left
/// half is one rank longer, the extra rank is paired with the first rank of the right half, which then has two
/// partners. This happens to a rank at most once, since from then on it is the first of its interval.
namespace phalanx::collectives {

/// One step of a rank: its interval of ranks is halved, and it goes on with the parts of the half that contains it.
struct Halving {
  struct Interval {
    int begin = 0, end = 0;
  };
  Interval keep;          // this rank's half
  Interval give;          // the other half
  int to = -1;            // the partner that receives this rank's data for `give`
  std::vector<int> from;  // 0 to 2 partners that send their data for `keep`
};

/// Returns the halvings of a rank, from the whole group down to the rank itself: ceil(log2 P) or one less.
std::vector<Halving> halvings(int rank, int ranks);

/// Combines the inputs of all ranks and returns this rank's part, without Reduction::finish(). The result has its own
/// memory, or is a view of `input` in a group of one. Each rank sends every part but its own once. Ranks are combined
/// out of order, so only commutative reductions are supported.
at::Tensor reduce_scatter_by_halving(Communicator& group, const at::Tensor& input, const PartLayout& parts,
                                     const Reduction& op);

/// Gathers the parts of all ranks in `output` of every rank, by the halvings in reverse order; `output` already holds
/// this rank's part. Each rank receives every part but its own once. On average it sends the same number of bytes, and
/// at most half of the tensor more.
void all_gather_by_doubling(Communicator& group, const at::Tensor& output, const PartLayout& parts);

}  // namespace phalanx::collectives
