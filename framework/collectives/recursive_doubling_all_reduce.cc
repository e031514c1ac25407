// SPDX-License-Identifier: Apache-2.0
// Recursive doubling all-reduce, for any number of ranks.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", Int. J. High
// Perform. Comput. Appl. 19 (2005), section on all-reduce.
//
// Let Q be the largest power of two up to P. First, each odd rank among the lowest 2 (P - Q) ranks sends its tensor to
// its lower neighbor. Q ranks remain; in step k, two ranks whose places differ in bit k exchange their tensors.
// Finally, the odd ranks receive the result.
//
// Steps: log2 P for a power of two, otherwise floor(log2 P) + 2. On the wire: n log2 Q bytes per rank, n for such an
// odd rank, n (log2 Q + 1) for its neighbor. It has the fewest steps: for short tensors.
//
// Every intermediate result covers a run of adjacent ranks, combined in rank order, and both partners combine in the
// same order. So reductions need not be commutative, and all ranks get the same bits.
#include <bit>

#include "framework/collectives/algorithm.h"
#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

void double_up(Communicator& group, const at::Tensor& tensor, const Reduction& op, int places, int folded) {
  const auto rank_at = [&](int place) { return place < folded ? 2 * place : place + folded; };
  const int place = group.rank() < 2 * folded ? group.rank() / 2 : group.rank() - folded;
  const at::Tensor received = scratch(tensor, tensor.numel());
  for (int distance = 1; distance < places; distance *= 2) {
    const int peer = rank_at(place ^ distance);
    exchange(group, tensor, peer, received, peer);
    if (peer < group.rank()) {
      combine_before(op, received, tensor);
    } else {
      combine(op, tensor, received);
    }
  }
}

void recursive_doubling_all_reduce(Communicator& group, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  const int rank = group.rank();
  const int places = static_cast<int>(std::bit_floor(static_cast<unsigned>(group.size())));
  const int folded = group.size() - places;
  const bool in_pair = rank < 2 * folded;
  if (in_pair && rank % 2 == 1) {
    send(group, tensor, rank - 1);
    return recv(group, tensor, rank - 1);
  }
  if (in_pair) {
    const at::Tensor received = scratch(tensor, tensor.numel());
    recv(group, received, rank + 1);
    combine(operation.reduction, tensor, received);
  }
  double_up(group, tensor, operation.reduction, places, folded);
  finish(operation.reduction, tensor, group.size());
  if (in_pair) send(group, tensor, rank + 1);
}

const bool recursive_doubling_all_reduce_registered =
    Algorithms::global().add({.op = Op::kAllReduce,
                              .name = "recursive_doubling",
                              .about = "log2 P steps, n log2 P bytes per rank; in rank order; for short tensors",
                              .run = recursive_doubling_all_reduce});

}  // namespace
}  // namespace phalanx::collectives
