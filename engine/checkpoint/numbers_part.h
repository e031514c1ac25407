// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"

namespace phalanx {

/// A part that is a few numbers, alike on all ranks. `load` gets none from a checkpoint that lacks the part.
CheckpointPart numbers_part(std::string name, std::function<std::vector<double>()> save,
                            std::function<void(const std::vector<double>&)> load);

}  // namespace phalanx
