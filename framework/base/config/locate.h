// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx::config {

/// The sources of a config, in the form that load() takes.
struct Sources {
  std::string path{};                    // the config file; empty: no file
  std::vector<std::string> overrides{};  // each "key.path=value"
};

/// Adds places to problems that were found in a loaded config, where only keys are known: the line of the file, or the
/// flag, that sets the key. A key that was not written gets the place of its section, or just the file. A problem
/// without a key gets the place of the first key that its message names and the sources set. A problem that names no
/// such key, or that already has a place, stays as it is. Never throws: if the file can no longer be read, all problems
/// stay as they are.
ConfigError located(const ConfigError& error, const Sources& sources);

/// Sorts problems in the order in which a user will fix them: the file from top to bottom, then problems without a
/// line, then the flags in the order given.
void sort_by_place(std::vector<ConfigProblem>& problems, const std::vector<std::string>& overrides);

}  // namespace phalanx::config
