// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "engine/config/faults_config.h"
#include "engine/config/mesh_config.h"
#include "framework/base/error.h"
#include "launch/local/meeting_folder.h"

namespace phalanx {

/// The invitations of newcomers to take part in a job (faults.on_lost_rank: replace), as one of its ranks sees them. If
/// the meeting folder cannot be used, as on a full disk, the first rank tells the person once, and nobody is invited
/// for a minute. No function throws. Not thread-safe.
class Invitations {
 public:
  /// The ranks that the job has at present.
  struct Ranks {
    const std::vector<int>& members;  // their numbers in the job, in their order
    const MeshConfig& mesh;           // newcomers take part in whole replicas
    bool first;                       // this rank is the first of them
  };

  /// Uses the meeting folder that kMeetingFolder names. Nobody is ever invited without it, or if `faults` replaces no
  /// lost ranks.
  explicit Invitations(const FaultsConfig& faults);

  /// Returns the meeting folder. Null: nobody is ever invited.
  const MeetingFolder* meeting() const { return meeting_ ? &*meeting_ : nullptr; }

  /// Returns the newcomers that wait, without those for whom a replica has no other ranks yet.
  std::vector<Newcomer> waiting(const Ranks& ranks);

  /// Returns true if there were such newcomers at the last look, unless invited() followed. Looks every 50 ms at most.
  bool newcomers_wait(const Ranks& ranks);

  /// Invites the newcomers that wait. Returns nothing if nobody is invited.
  std::optional<Attempt> invite(const Ranks& ranks);

  /// Makes newcomers_wait() forget its last look: the first rank has invited those that were seen, or nobody.
  void invited() { newcomers_seen_ = false; }

  /// Invites nobody for a minute, since a rank cannot write to the meeting folder (MeetingFolder::is_postponed()).
  void postpone(const Ranks& ranks);

  /// Notes that the newcomers of an attempt take part. They do so whether or not this rank can note it, and note it,
  /// too.
  void note_part(const Attempt& attempt, const Ranks& ranks);

 private:
  using Clock = std::chrono::steady_clock;

  void invite_later(const Error& error, bool first);

  std::optional<MeetingFolder> meeting_;
  Clock::time_point next_invitation_{};
  bool told_ = false;  // the person, that the meeting folder cannot be used
  Clock::time_point next_look_{};
  bool newcomers_seen_ = false;
};

/// Lets the ranks know that the newcomer `self`, which is this process, waits. While it cannot write to the folder, as
/// on a full disk, it tells the person once and tries again, since a process in its place could not write either.
/// Returns false if `stopped` returns true meanwhile.
bool ask_for_invitation(const MeetingFolder& meeting, const Newcomer& self, const std::function<bool()>& stopped);

/// Waits, as the newcomer with this number, until it is invited. Returns nothing if `stopped` returns true meanwhile:
/// the ranks then know that it has ended, unless the folder cannot be written. Throws Error if it cannot be read.
std::optional<Attempt> await_invitation(const MeetingFolder& meeting, int number, const std::function<bool()>& stopped);

}  // namespace phalanx
