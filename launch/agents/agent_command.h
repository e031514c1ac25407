// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/agents/share.h"

namespace phalanx {

/// Returns the command that runs a shell's script on a host: on other hosts than this one through ssh, without a
/// terminal. A connection to a host that has become silent breaks after 15 s.
std::vector<std::string> command_on(const std::string& host, const std::string& script);

/// Returns the command of a shell that starts an agent: it reads variables (NAME=VALUE) from its standard input, a line
/// each up to an empty one, exports them, and becomes `command` in `folder`. Without the empty line, which is missing
/// if the launcher or the connection ended before, it exits with status 1.
std::string agent_script(const std::string& folder, const std::vector<std::string>& command);

/// Returns the variables of an agent, a line each: its order, PHALANX_TERMINAL=1 or 0, this process's other PHALANX_*
/// variables, and those that match `patterns`, names or beginnings and *. Throws ConfigError if one has several lines.
std::string variables_for(const AgentOrder& order, const std::vector<std::string>& patterns);

/// Returns the lines of such variables without those that have the secret of the job.
std::string without_secret(const std::string& variables);

}  // namespace phalanx
