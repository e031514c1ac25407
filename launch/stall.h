// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// An operation in which a rank has waited for longer than usual. Ranks leave these notes in the run's log folder, so
/// that each one can see which of the others wait, too, and so which do not.
struct WaitNote {
  int rank = 0;
  std::string operation{};  // "all_reduce #12 of world"
  int peer = -1;            // the rank that it waits for, of a message in the world; -1: any rank
  double since = 0;         // failure_time()
  bool told = false;        // the rank has told the console of it
};

/// Leaves `note` in `folder` as rank<r>.waiting, in place of an earlier one. Throws DataError.
void leave_wait(const std::string& folder, const WaitNote& note);

/// Removes the note of `rank`, if there is one.
void forget_wait(const std::string& folder, int rank) noexcept;

/// Returns the complete notes of ranks 0 to size - 1, in rank order.
std::vector<WaitNote> read_waits(const std::string& folder, int size);

/// What can be known of who waits for whom.
struct Waits {
  std::vector<WaitNote> notes{};  // of the ranks that wait, in rank order
  std::vector<int> visible{};  // ranks whose notes would be seen here, in order: on other hosts, the folder may differ
  int size = 0;                // ranks there are
  double now = 0;              // as WaitNote::since
  double ripe = 0;             // seconds of a wait that is worth telling
};

/// What rank `teller` is to tell the console: "rank 0 has waited 20 s in all_reduce #419 of world for rank 2". Absent
/// where another rank tells it, or nobody needs to. Of ranks that look at the same time one tells: of those whose wait
/// is ripe and shows whom it is for, the first.
///
/// A collective waits for the ranks that wait for nothing themselves, a message for its peer unless that waits too.
/// Where all ranks wait, it is for each other, and what each is in is told; in one operation, it is merely slow.
std::optional<std::string> stall_to_tell(const Waits& waits, int teller);

}  // namespace phalanx
