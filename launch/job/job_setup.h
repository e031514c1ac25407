#pragma once

#include "engine/experiment/run_folder.h"
#include "framework/comm/communicator.h"
#include "launch/job/job.h"

namespace phalanx {

/// Makes the run folder, with the config in it. Throws ConfigError.
RunFolder prepare_folder(Job& job);

// What ranks settle among themselves when no launcher of ours has told them. Collective; errors are those of all ranks.

/// Throws ConfigError unless all ranks have the same config: with different ones they would train different models
/// together.
void check_same_config(Job& job, Communicator& world);

/// Calls prepare_folder() on rank 0, and tells all ranks where it is. Throws ConfigError.
RunFolder agree_on_folder(Job& job, Communicator& world);

}  // namespace phalanx
