// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

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

}  // namespace phalanx
