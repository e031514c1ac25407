// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/agents/host_ranks.h"
#include "launch/agents/rank_notice.h"
#include "launch/local/replacements.h"
#include "launch/local/supervisor.h"

namespace phalanx {

/// Replaces the lost ranks of a job on several hosts (faults.on_lost_rank: replace): decides when and where, and has
/// the agent of that host start a process. A rank is replaced on its own host, or in a free slot of another one if its
/// host is lost. If there is no free slot, it is replaced once there is one, unless a rank of a host that joins takes
/// its place before. Belongs to the launcher. Not thread-safe.
class HostReplacements {
 public:
  struct Options {
    Replacements::Options replacements{};
    std::string log_folder{};
    int max_ranks = 0;  // no more processes run at a time; 0: the ranks with which the job begins

    /// Sends an order to the agent of a host, which it starts if there is none. Throws Error.
    std::function<void(std::size_t host, const std::string& order)> tell{};
  };

  /// `ranks` and `supervisor` must outlive the object.
  HostReplacements(HostRanks& ranks, Supervisor& supervisor, Options options)
      : ranks_(ranks), supervisor_(supervisor), options_(std::move(options)), replacements_(options_.replacements) {}

  /// Returns true if this process is not a rank yet.
  bool waits(int number) const { return replacements_.waits(number); }

  /// Returns true if a process of this host runs that is a rank, or one of any host.
  bool takes_part(std::size_t host) const;
  bool anyone_takes_part() const;

  /// Returns the number of processes that do not run yet but count: they are planned, or will be once it is certain
  /// that the ranks have ended whose places they are to take.
  int expected() const { return replacements_.pending() + static_cast<int>(uncertain_.size()); }

  /// Has the agent of a host that has joined start processes, in addition to the ranks that there are, for which
  /// `max_ranks` must leave room. They take the places of ranks for which there is no free slot.
  void join(std::size_t host, int processes);

  /// Takes what an agent says of a process of its host.
  void take(const RankNotice& notice);

  /// The processes of a host that run have ended, and with `host_lost` nothing is started there any more. Its ranks are
  /// replaced once the others have noted that they go on without them (mark_lost()), or it is certain that they have
  /// ended (note_certain()): until then, they may take part if only the launcher does not hear them.
  void lose(std::size_t host, const std::string& reason, bool host_lost);

  /// The lease of a host that is lost is over, so its processes have ended for certain.
  void note_certain(std::size_t host);

  /// Replaces the ranks of lost hosts of which it is certain by now that they have ended, and ranks for which there was
  /// no free slot before. To be called repeatedly.
  void look();

 private:
  using Time = std::chrono::system_clock::time_point;

  // A lost rank for which there was no free slot.
  struct Unplaced {
    int number;
    Time lost_at;
  };

  int most() const;
  bool start(Newcomer newcomer, std::optional<HostRanks::Place> place);
  void replace(int number, Time lost_at = std::chrono::system_clock::now());
  void replace_those_in(const std::vector<int>& ended);
  void replace_unplaced();

  HostRanks& ranks_;
  Supervisor& supervisor_;
  Options options_;
  Replacements replacements_;
  std::vector<int> uncertain_{};     // ranks of lost hosts that may still take part
  std::deque<Unplaced> unplaced_{};  // in the order of their loss
};

}  // namespace phalanx
