// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "engine/checkpoint/checkpoint_part.h"

namespace phalanx {

/// The state of LibTorch's default generator of the device where a rank computes, from which dropout draws: each rank's
/// own. Ranks that are threads of one process have one in common, and do not draw (engine/step/no_random_step.h). A
/// rank that was not there when the run was saved gets a state that follows from another's, as does one that goes on on
/// another kind of device.
CheckpointPart random_part(int rank, c10::Device device = c10::kCPU);

}  // namespace phalanx
