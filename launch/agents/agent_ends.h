// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/agents/agent_connections.h"
#include "launch/agents/host_ranks.h"
#include "launch/agents/rank_notice.h"
#include "launch/failure/failure.h"
#include "launch/failure/verdict.h"
#include "launch/local/supervisor.h"

namespace phalanx {

/// Decides what the ends of agents mean for a job on several hosts: why they have ended, and the verdict. Not
/// thread-safe.
class AgentEnds {
 public:
  struct Options {
    std::string log_folder{};
    std::chrono::nanoseconds lease{};         // the length of a lease
    bool goes_on = false;                     // the ranks that are left go on without one that fails
    int ranks = 0;                            // with which the job begins
    std::function<bool(int number)> waits{};  // returns true if a process is not a rank yet
  };

  /// `agents` and `ranks` must outlive the object.
  AgentEnds(const AgentConnections& agents, const HostRanks& ranks, Options options)
      : agents_(agents), ranks_(ranks), options_(std::move(options)) {}

  /// Remembers how a rank has ended, of which its agent tells before it ends itself.
  void take(const RankNotice& notice);

  /// Returns why an agent has ended that has no status of its own.
  std::string why(const Supervisor::End& end) const;

  /// Returns true if an agent has ended with the status of its ranks, and true if it had no lease any more.
  static bool has_own_status(const Supervisor::End& end);
  static bool was_without_lease(const Supervisor::End& end);

  /// Returns true if all ranks that a host has had are among these.
  bool are_lost(std::size_t host, const std::vector<int>& lost) const;

  /// Returns the verdict on a job whose agents have ended in this way. An agent that has told how its ranks have ended,
  /// none of which has failed, may then end in any way: the host may have become silent, or the connection may have
  /// broken. Removes the failures and the notes of lost ranks from the log folder.
  Verdict conclude(const std::vector<Supervisor::End>& ends, bool interrupted) const;

 private:
  std::size_t host_of(const Supervisor::End& end) const { return agents_[static_cast<std::size_t>(end.child)].host; }
  const std::string& name_of(const Supervisor::End& end) const { return ranks_.name(host_of(end)); }
  bool has(std::size_t host, int rank) const;
  std::optional<std::vector<RankEnd>> told_ends(const Supervisor::End& end, const std::vector<int>& lost) const;
  Failure failure_of(const Supervisor::End& end) const;
  int status_of(int rank, const std::vector<Supervisor::End>& bad) const;

  const AgentConnections& agents_;
  const HostRanks& ranks_;
  Options options_;
  std::map<int, int> statuses_{};  // of ranks that are not lost, by number
};

}  // namespace phalanx
