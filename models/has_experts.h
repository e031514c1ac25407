// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/model.h"

namespace phalanx {

/// Returns true if the model has layers that communicate with all ranks that have a part of a batch (ExpertParallel).
bool has_experts(const Model& model);

/// Returns the names of the options of these layers that count over the global batch (ExpertParallel), for messages.
/// Empty if there are none.
std::string counts_over_batch(const Model& model);

/// Explains why a model with such options cannot compute a batch in parts: "computes a batch in parts, but ...". The
/// message that it completes begins with the key that asks for parts.
std::string refusal_of_parts(const std::string& model, const std::string& options);

}  // namespace phalanx
