// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "launch/agents/beats.h"
#include "launch/agents/share.h"
#include "launch/local/launch_local.h"

namespace phalanx {

/// The orders that the launcher writes to the standard input of its agents, a line each. The end of the input means
/// kKillRanks: the launcher, or the connection to it, is gone.
inline constexpr const char* kStopRanks = "stop";  // ask the ranks to stop
inline constexpr const char* kEndRanks = "end";    // another host's rank has ended the job
inline constexpr const char* kKillRanks = "kill";
inline constexpr const char* kAnswer = "alive";     // and a number: the launcher has received this beat (beats.h)
inline constexpr const char* kEnded = "ended";      // and a number: this rank of another host has ended for certain
inline constexpr const char* kStartRank = "start";  // and to_text() of a newcomer: start it in place of a lost rank

/// The exit status of an agent whose lease is over. It is none of a job, since the others may go on.
inline constexpr int kWithoutLease = 75;

/// Runs the ranks of this host as forks of this process for the launcher that has started it (launch_agents.h), and
/// obeys what comes from standard input. It sends beats to standard input if that is a socket, and to standard output
/// otherwise. Without an answer for the length of a lease (beats.h), it kills the ranks, and ends with kWithoutLease.
/// The ranks have the same lease (set_lease_of_process()), so that they end as well if this process is stopped.
/// With LocalLaunch::replacements, it tells the launcher of each process that has ended (rank_notice.h), and waits for
/// orders even if it has no process, as long as all that it had were lost. `launch` has what all hosts have in common;
/// `order` adds the rest. Returns kWithoutLease or the status that run_share() returns. Throws ConfigError if this host
/// does not see the log folder.
int run_agent(LocalLaunch launch, const AgentOrder& order, const std::function<int(int rank)>& body);

}  // namespace phalanx
