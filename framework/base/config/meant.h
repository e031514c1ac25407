// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx::config {

/// The candidate that `word` was probably meant to be: what another framework calls by that name ("learning_rate" is
/// lr, "bfloat16" is bf16), else the nearest() in spelling. Empty when there is none.
std::string meant_by(const std::string& word, const std::vector<std::string>& candidates);

/// The path whose last key is `key`, or was probably meant by it: "optimizer.lr" for "lr" or "learning_rate". Of
/// several, the one with the fewest keys, and of those the first. Empty when there is none.
std::string path_meant_by(const std::string& key, const std::vector<std::string>& paths);

}  // namespace phalanx::config
