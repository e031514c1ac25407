#pragma once

#include "engine/checkpoint/part.h"

namespace phalanx {

/// The state of LibTorch's default generator of the CPU, from which dropout draws: each rank's own. Ranks that are
/// threads of one process share one, and what they draw depends on who comes first.
Part random_part(int rank);

}  // namespace phalanx
