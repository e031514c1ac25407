// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/experiment/config.h"
#include "framework/base/error.h"

namespace phalanx {

/// The axes of more than one rank along which a replica, its experts or its sequences are divided, from the outermost:
/// {"pipe", 2}.
std::vector<std::pair<std::string, std::int64_t>> divided_axes(const MeshConfig& mesh);

/// Adds what does not go together with sections mesh, pipeline and plan.
void check_mesh(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

}  // namespace phalanx
