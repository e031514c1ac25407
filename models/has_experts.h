#pragma once

#include "models/model.h"

namespace phalanx {

/// Whether the model has layers that communicate with all ranks that have a part of a batch (ExpertParallel).
bool has_experts(const Model& model);

}  // namespace phalanx
