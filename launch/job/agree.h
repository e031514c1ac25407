// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/communicator.h"
#include "launch/job/job.h"
#include "launch/job/prepare_folder.h"

// Agreements between ranks that were not started by our own launcher. Collective; all ranks get the same errors.
namespace phalanx {

/// Returns a message for the user if the ranks' processors differ in vendor or vector instructions, which determine the
/// code that computes. The last bits of their results then differ. Returns an empty string if all are of the same kind.
std::string differing_processors(Communicator& world);

/// Calls prepare_folder() on rank 0 and returns the folder on all ranks. Throws ConfigError.
ClaimedFolder agree_on_folder(const Job& job, Communicator& world);

}  // namespace phalanx
