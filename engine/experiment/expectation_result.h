// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// An expectation of a run, and what the run has got.
struct ExpectationResult {
  std::string key;                // within section expect, such as "test.accuracy.min"
  std::string wanted;             // such as ">= 0.97"
  std::string got;                // such as "0.953", or why there is no value
  std::optional<double> value{};  // absent: nothing was measured
  bool met = false;
};

/// Returns a text that lists all expectations that were not met, each on a line with what was wanted and what the run
/// has got. Empty if all were met.
std::string list_unmet(const std::vector<ExpectationResult>& results);

}  // namespace phalanx
