// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Takes "--set X" and "--set=X" out of the words and returns each X, in their order: gflags keeps the last one alone.
/// Throws ConfigError where the last word is --set.
std::vector<std::string> take_overrides(std::vector<std::string>& words);

}  // namespace phalanx
