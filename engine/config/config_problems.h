// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

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

}  // namespace phalanx
