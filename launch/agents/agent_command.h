// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/agents/share.h"

namespace phalanx {

/// The ways in which other hosts than this one are reached: by ssh, or by srun, in a job of Slurm to which they belong.
enum class Reach { kSsh, kSrun };

/// Returns the command that runs a shell's script on a host: on other hosts than this one by ssh or srun, without a
/// terminal. A connection of ssh to a host that has become silent breaks after 15 s.
///
/// With srun, the script is a step of its own with one task. It may use everything that the job has on this node, also
/// what other steps use, and has the environment of this process, without the variables that would set other options of
/// srun. --no-kill keeps Slurm from ending the step when it takes the node for lost, which the launcher decides by
/// itself.
std::vector<std::string> command_on(const std::string& host, const std::string& script, Reach reach);

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
