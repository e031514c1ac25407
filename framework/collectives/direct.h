// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/collectives/algorithm.h"

/// Every collective in its simplest form: messages go straight from the ranks that have the data to the ranks that need
/// it. These algorithms support any number of ranks, any counts, any root and any reduction, and they combine in rank
/// order. They are registered as "direct", and a backend falls back to them for the operations that it lacks.
///
/// n: bytes of the whole tensor; P: ranks. All messages of a rank are in flight at once, except
/// in reduce, reduce_scatter (two at a time) and barrier (one step after the other).
///
/// | | messages that a rank sends | bytes |
/// |---|---|---|
/// | broadcast | root: P - 1 | root: n (P - 1) |
/// | reduce | all but root: one per chunk | n |
/// | all_reduce | 2 (P - 1) | 2 n (P - 1) / P |
/// | reduce_scatter | P - 1 | all parts but its own |
/// | all_gather | P - 1 | its own part, P - 1 times |
/// | gather | all but root: 1 | its own part |
/// | scatter | root: P - 1 | root: all parts but its own |
/// | all_to_all | P - 1 | all parts but its own |
/// | barrier | ceil(log2 P) | one byte per message |
namespace phalanx {

/// Performs a collective and blocks until it is complete. The arguments have been checked. Must be called from a body
/// of Communicator::run(), or from an operation that a backend has launched itself.
void run_directly(Communicator& group, const Operation& operation);

// Building blocks of other algorithms.
void direct_reduce_scatter(Communicator& group, const Operation& operation);
void direct_all_gather(Communicator& group, const Operation& operation);

}  // namespace phalanx
