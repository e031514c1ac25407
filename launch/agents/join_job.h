// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Lets this host join a running job (train --join) with up to `ranks` ranks: connects to the launcher at `address`,
/// proves the secret (PHALANX_JOB_SECRET or PHALANX_JOB_SECRET_FILE), and starts the launcher's command as an agent,
/// which obeys orders from this connection (run_agent()). It runs in the launcher's current folder, with the variables
/// that the launcher passes on, except for those that this process has itself. Blocks until the agent has ended, and
/// returns its exit status. The agent and its ranks die with this process, which the job takes for the loss of a host.
///
/// Throws ConfigError if there is no secret, if the launcher has another one or refuses this host, or if this host does
/// not see the run folder; CannotConnect if nobody listens at the address; and CommError if the launcher does not
/// answer within 30 s. Must be called while this process has one thread.
int join_job(const std::string& address, int ranks);

}  // namespace phalanx
