// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "launch/agents/share.h"
#include "launch/local/launch_local.h"

namespace phalanx {

/// The orders that the launcher writes to the standard input of its agents, a line each. The end of the input means
/// kKillRanks: the launcher, or the connection to it, is gone.
inline constexpr const char* kStopRanks = "stop";  // ask the ranks to stop
inline constexpr const char* kEndRanks = "end";    // another host's rank has ended the job
inline constexpr const char* kKillRanks = "kill";

/// Runs the ranks of this host as forks of this process for the launcher that has started it (launch_agents.h), and
/// obeys what comes from standard input. `launch` has what all hosts have in common; `order` adds the rest. Returns the
/// exit status of the agent: see run_share(). Throws ConfigError if this host does not see the log folder.
int run_agent(LocalLaunch launch, const AgentOrder& order, const std::function<int(int rank)>& body);

}  // namespace phalanx
