// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "launch/local/meeting_folder.h"

namespace phalanx {

/// Tells a launcher, or its agent on a host, the state of each process of a job in which lost ranks are replaced, by
/// the notes in the meeting folder.
class RankNotes {
 public:
  /// `ranks` is the number of ranks with which the job begins.
  RankNotes(int ranks, const std::string& meeting_folder) : ranks_(ranks), folder_(meeting_folder) {}

  /// Returns true if this process is not a rank yet.
  bool waits(int number) const;

  /// Lets the ranks know that a process has ended. If that fails, prints why; the ranks wait for it up to a deadline.
  void note_end(int number) const;

 private:
  int ranks_;
  MeetingFolder folder_;
  mutable std::set<int> taking_part_{};  // newcomers that waits() has seen take part
};

}  // namespace phalanx
