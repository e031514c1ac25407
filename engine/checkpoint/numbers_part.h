// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"

namespace phalanx {

/// Returns a part that consists of a few numbers, the same on all ranks. `load` gets none from a checkpoint without the
/// part.
CheckpointPart numbers_part(std::string name, std::function<std::vector<double>()> save,
                            std::function<void(const std::vector<double>&)> load);

}  // namespace phalanx
