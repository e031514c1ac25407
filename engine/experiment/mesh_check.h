// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/experiment/config.h"
#include "engine/sync/synchronizers.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {

/// Adds a problem of `key` where something is wrong. Problems that concern the relation of several keys have no one
/// line.
inline void refuse_if(std::vector<ConfigProblem>& problems, bool wrong, const char* key, const std::string& message) {
  if (wrong) problems.push_back({.origin = "config", .key = key, .message = message, .suggestion = {}});
}

/// The names of the strategies that have a trait, as a list to read.
inline std::string strategies_where(bool StrategyTraits::* trait) {
  return join(Synchronizers::global().names_where(trait), ", ");
}

/// The axes of more than one rank along which a replica, its experts or its sequences are divided, from the outermost:
/// {"pipe", 2}.
std::vector<std::pair<std::string, std::int64_t>> divided_axes(const MeshConfig& mesh);

/// Adds what does not go together with sections mesh, pipeline and plan.
void check_mesh(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

}  // namespace phalanx
