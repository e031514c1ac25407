// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/experiment/config.h"
#include "engine/strategies/strategies.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {

/// Adds a problem of `key` if `wrong`. Problems have no line number, because many of them concern several keys.
inline void refuse_if(std::vector<ConfigProblem>& problems, bool wrong, const char* key, const std::string& message) {
  if (wrong) problems.push_back({.origin = "config", .key = key, .message = message, .suggestion = {}});
}

/// Returns the names of the strategies that have a trait, separated by commas.
inline std::string strategies_where(bool StrategyTraits::* trait) {
  return join(Strategies::global().names_where(trait), ", ");
}

/// Returns the axes of more than one rank along which a replica, its experts or its sequences are partitioned, with
/// their sizes, such as {"pipe", 2}. The outermost axis is first.
std::vector<std::pair<std::string, std::int64_t>> model_parallel_axes(const MeshConfig& mesh);

/// Adds the problems of sections mesh, pipeline and plan, among themselves and with other sections.
void check_mesh(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

}  // namespace phalanx
