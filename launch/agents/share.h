// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// The ranks of one host in a job that agents start (launch.with: ssh or srun): `ranks` ranks from `first_rank`
/// on, of the `slots` for which the host has room.
struct HostShare {
  std::string host{};
  int first_rank = 0;
  int ranks = 0;
  int slots = 0;
};

/// Divides ranks among hosts ("name" or "name:slots"), in blocks. If no host has slots, each gets the same number, or
/// the first ones get one more, and all have room for as many as the first one; otherwise they are filled in their
/// order, and a host without slots has one. Hosts that get no rank come last. Throws ConfigError for launch.ranks if
/// there are fewer slots than ranks, and for launch.hosts if a host is named twice.
std::vector<HostShare> divide_among_hosts(const std::vector<std::string>& hosts, int ranks);

/// The order that the launcher gives to an agent on a host. It may begin without a rank, and wait for one.
struct AgentOrder {
  int first_rank = 0;
  int ranks = 0;
  int ranks_of_job = 0;
  std::string rendezvous{};  // URL at which all ranks meet
};

/// The variable that makes a process an agent, as text: to_text().
inline constexpr const char* kAgentOrder = "PHALANX_AGENT";
std::string to_text(const AgentOrder& order);

/// Returns the order in the environment of this process, and removes it, so that no child takes itself for an agent.
/// Returns nothing if this process is no agent. Throws ConfigError if the variable is malformed.
std::optional<AgentOrder> take_agent_order();

}  // namespace phalanx
