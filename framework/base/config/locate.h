// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx::config {

/// Where a config comes from, as load() takes it.
struct Sources {
  std::string path{};                    // the file; empty: none
  std::vector<std::string> overrides{};  // each "key.path=value"
};

/// Gives problems that were found in a loaded config, where only keys are known, the places where these keys were
/// written: the file's line, or the flag. A key that was not written has its section's place, or just the file. Of a
/// problem without a key, it is the first key that the message names and the sources set; where there is none, and
/// where a problem has a place already, it stays as it is. Never throws: a file that has gone leaves all as it is.
ConfigError located(const ConfigError& error, const Sources& sources);

/// Puts problems into the order in which they are mended: the file from top to bottom, then what has no line, then the
/// flags as given.
void sort_by_place(std::vector<ConfigProblem>& problems, const std::vector<std::string>& overrides);

}  // namespace phalanx::config
