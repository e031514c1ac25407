// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx::config {

/// Returns the candidate that `word` was probably meant to be: the key or value that another framework calls by that
/// name ("learning_rate" is lr, "bfloat16" is bf16), else the nearest() in spelling. Empty if no candidate is near.
std::string suggest(const std::string& word, const std::vector<std::string>& candidates);

/// Returns the path whose last key is `key`, or was probably meant by it: "optimizer.lr" for "lr" or "learning_rate".
/// If there are several, returns the one with the fewest keys, and the first of these. Empty if no path is near.
std::string suggest_path(const std::string& key, const std::vector<std::string>& paths);

}  // namespace phalanx::config
