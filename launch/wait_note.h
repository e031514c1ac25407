// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// What a rank waits in for longer than usual, left in the run's log folder for the other ranks: those that wait tell
/// each other, and so those that do not wait are found.
struct WaitNote {
  int rank = 0;
  std::string operation{};  // "all_reduce #12 of world"
  int peer = -1;            // the rank that it waits for, of a message in the world; -1: any rank
  double since = 0;         // failure_time()
  bool told = false;        // the rank has told the console of it
};

/// Leaves `note` in `folder` as rank<r>.waiting, in place of an earlier one. Throws DataError.
void leave_wait(const std::string& folder, const WaitNote& note);

/// Removes this rank's.
void forget_wait(const std::string& folder, int rank) noexcept;

/// Those of ranks 0 to size - 1 that are there and whole, in rank order.
std::vector<WaitNote> read_waits(const std::string& folder, int size);

}  // namespace phalanx
