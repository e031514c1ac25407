// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/descriptor.h"

namespace phalanx {

/// The processes of the launcher that become agents, or speak with them. Each function runs in a child of the launcher,
/// and returns the status with which the child ends.

/// Becomes the program `command` (argv_of()), which starts an agent: on this host, or by ssh on another one. Its
/// standard input is `socket`, and so is its standard output with `with_output`: ssh passes on what the agent says
/// there. Returns only if the program cannot be run.
int run_agent_command(const std::vector<char*>& command, const Descriptor& socket, bool with_output);

/// Runs the command `srun`, which starts an agent on another host, and passes on what the launcher, at `socket`, and
/// this agent tell each other (relay_command()), since the status of srun does not tell how the agent has ended.
int relay_agent_command(const std::vector<std::string>& srun, const Descriptor& socket);

/// Passes on what the launcher, at `socket`, and the agent of a host that joins, at `connection`, tell each other
/// (relay()). The agent gets `answer` first.
int speak_with_joined(const Descriptor& socket, const Descriptor& connection, const std::string& answer);

}  // namespace phalanx
