#pragma once

#include "framework/collectives/algorithm.h"

/// Every collective in the simplest way: messages straight from those that have to those that want. Any number of
/// ranks, any counts, any root, any reduction, combined in the order of ranks. They are registered as "direct"; a
/// backend that lacks an operation calls them from a body of Communicator::run(), in which they block. Arguments must
/// have been checked.
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

void direct_broadcast(Communicator& group, const Operation& operation);
void direct_reduce(Communicator& group, const Operation& operation);
void direct_all_reduce(Communicator& group, const Operation& operation);
void direct_reduce_scatter(Communicator& group, const Operation& operation);
void direct_all_gather(Communicator& group, const Operation& operation);
void direct_gather(Communicator& group, const Operation& operation);
void direct_scatter(Communicator& group, const Operation& operation);
void direct_all_to_all(Communicator& group, const Operation& operation);
void direct_barrier(Communicator& group, const Operation& operation = {});

}  // namespace phalanx
