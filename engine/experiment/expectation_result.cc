// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/expectation_result.h"

#include <algorithm>

namespace phalanx {

std::string list_unmet(const std::vector<ExpectationResult>& results) {
  const auto unmet = std::ranges::count(results, false, &ExpectationResult::met);
  if (unmet == 0) return "";
  std::string text = "the run has completed, but not as expected: " + std::to_string(unmet) + " of " +
                     std::to_string(results.size()) + (results.size() == 1 ? " expectation is" : " expectations are") +
                     " not met";
  for (const auto& [key, wanted, got, value, met] : results) {
    if (!met) text += "\nexpect." + key + ": wanted " + wanted + ", got " + got;
  }
  return text;
}

}  // namespace phalanx
