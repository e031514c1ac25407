// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/descriptor.h"

namespace phalanx {

/// Runs a command whose standard input and output are connected with an agent on another host, and passes on what the
/// launcher and this agent tell each other (relay()), until the command has ended. Runs in a process of its own, a
/// child of the launcher. The command gets SIGTERM when this process ends, in whatever way; srun then ends its step.
///
/// Returns the exit status that the agent has said at last, so the result does not depend on what the command makes of
/// it. If the agent has said nothing: kUsage if that is the status of the command, as of an agent that cannot begin,
/// and kConnectionBroke otherwise.
int relay_command(const Descriptor& launcher, const std::vector<std::string>& command);

}  // namespace phalanx
