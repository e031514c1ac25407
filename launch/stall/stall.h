// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// An operation in which a rank has waited for longer than usual. Ranks write these notes to the run's log folder, so
/// that each rank can see which of the others are also waiting, and therefore which are not.
struct WaitNote {
  int rank = 0;
  std::string operation{};  // "all_reduce #12 of world"
  int peer = -1;            // for a message in the world: the rank that it waits for; -1: any rank
  double since = 0;         // failure_time()
  bool reported = false;    // the rank has reported it on the console
};

/// Writes `note` to `folder` as rank<r>.waiting, replacing an earlier one. Throws DataError.
void write_wait_note(const std::string& folder, const WaitNote& note);

/// Removes the note of `rank`, if there is one.
void remove_wait_note(const std::string& folder, int rank) noexcept;

/// Returns the complete notes of ranks 0 to size - 1, in rank order.
std::vector<WaitNote> read_wait_notes(const std::string& folder, int size);

/// The available information about which ranks wait for which others.
struct Waits {
  std::vector<WaitNote> notes{};  // notes of the waiting ranks, in rank order
  std::vector<int> visible{};     // ranks whose notes are visible here, in order: the folder may differ on other hosts
  int size = 0;                   // number of ranks
  double now = 0;                 // current time, like WaitNote::since
  double report_after = 0;        // seconds after which a wait is worth reporting
};

/// Returns the text that rank `reporter` must print on the console, such as "rank 0 has waited 20 s in all_reduce #419
/// of world for rank 2", or nothing if another rank prints it or nothing needs to be printed. If several ranks call
/// this at the same time, only one prints: the first rank that has waited long enough and knows for whom.
///
/// A collective waits for the ranks that are not waiting themselves. A message waits for its peer, unless the peer is
/// waiting too. If all ranks are waiting, they wait for each other, and the text names the operation of each; if that
/// is the same for all, it is merely slow.
std::optional<std::string> stall_message(const Waits& waits, int reporter);

}  // namespace phalanx
