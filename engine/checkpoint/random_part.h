// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "engine/checkpoint/checkpoint_part.h"

namespace phalanx {

/// Returns the part with the state of LibTorch's default generator on a rank's device, from which dropout draws. Each
/// rank has its own; ranks that are threads of one process share one and do not draw from it
/// (engine/step/no_random_step.h). A rank that did not exist when the run was saved gets a state derived from another
/// rank's. So does a rank that resumes on a different kind of device.
CheckpointPart random_part(int rank, c10::Device device = c10::kCPU);

}  // namespace phalanx
