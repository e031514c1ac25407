#pragma once

#include "engine/checkpoint/checkpoint_part.h"

namespace phalanx {

/// The state of LibTorch's default generator of the CPU, from which dropout draws: each rank's own. Ranks that are
/// threads of one process have one in common, and do not draw (engine/step/no_random_step.h). A rank that was not there
/// when the run was saved gets a state that follows from another's.
CheckpointPart random_part(int rank);

}  // namespace phalanx
