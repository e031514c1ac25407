// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/wait_note.h"

namespace phalanx {

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
