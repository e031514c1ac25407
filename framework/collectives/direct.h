// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/collectives/algorithm.h"

/// Every collective in the simplest way: messages straight from those that have to those that want. Any number of
/// ranks, any counts, any root, any reduction, combined in the order of ranks. They are registered as "direct", and are
/// what a backend does that lacks an operation.
///
/// n: bytes of the whole tensor; P: ranks. All messages of a rank are under way at once, but for those of reduce.
///
/// | | messages that a rank sends | bytes |
/// |---|---|---|
/// | broadcast | root: P - 1 | root: n (P - 1) |
/// | reduce | all but root: one a chunk | n |
/// | all_reduce | 2 (P - 1) | 2 n (P - 1) / P |
/// | reduce_scatter | P - 1 | all parts but its own |
/// | all_gather | P - 1 | its own part, P - 1 times |
/// | gather | all but root: 1 | its own part |
/// | scatter | root: P - 1 | root: all parts but its own |
/// | all_to_all | P - 1 | all parts but its own |
/// | barrier | ceil(log2 P) | one each |
namespace phalanx {

/// Does a collective whose arguments have been checked, blocking: in a body of Communicator::run(), or in what a
/// backend launches itself.
void do_directly(Communicator& group, const Operation& operation);

// Those that others are made of.
void direct_reduce_scatter(Communicator& group, const Operation& operation);
void direct_all_gather(Communicator& group, const Operation& operation);

}  // namespace phalanx
