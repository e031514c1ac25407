// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "framework/observe/hang/flight_recorder_groups.h"
#include "framework/observe/hang/flight_recorder_value.h"
#include "framework/observe/hang/picture.h"

namespace phalanx {

/// An operation of PyTorch, and the group that its rank has named.
struct DumpedOperation {
  PicturedOperation operation;
  const DumpGroup* group = nullptr;
  bool message = false;  // between two ranks
  bool done = false;
  bool ends_coalescing = false;  // the last entry of operations that were issued together, with their state
};

/// Returns the last operations in the dump `content` of a rank. Operations that were issued together count as one.
/// `groups` must have the groups of all ranks. Throws DataError.
std::deque<DumpedOperation> operations_in(const DumpValue& content, DumpGroups& groups, int rank);

/// Marks as running the oldest operation of each group that has not completed, for which the later ones wait.
void start_oldest(std::deque<DumpedOperation>& operations);

}  // namespace phalanx
