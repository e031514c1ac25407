// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Removes "--set X" and "--set=X" from the words and returns each X, in their order: gflags would keep only the last
/// one. Throws ConfigError if the last word is --set.
std::vector<std::string> take_overrides(std::vector<std::string>& words);

}  // namespace phalanx
