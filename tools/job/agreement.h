#pragma once

#include "engine/experiment/run_folder.h"
#include "framework/comm/communicator.h"
#include "tools/job/job.h"

namespace phalanx {

// What ranks settle among themselves when no launcher of ours has told them. Collective; errors are those of all ranks.

/// Throws ConfigError unless all ranks have the same config: with different ones they would train different models
/// together.
void check_same_config(Job& job, Communicator& world);

/// Makes the run folder on rank 0, with the config in it, and tells all ranks where it is. Throws ConfigError.
RunFolder agree_on_folder(Job& job, Communicator& world);

}  // namespace phalanx
