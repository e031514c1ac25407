// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/node.h"
#include "framework/base/error.h"
#include "tools/regress/suite/suite_config.h"

namespace phalanx::regress {

/// A suite file.
struct Suite {
  std::string path{};
  std::string name{};  // the file's name without its ending
  SuiteConfig config{};
  std::vector<std::vector<std::string>> files{};  // by entry: the paths of its configs, sorted, each once
  config::Node tree{};                            // the file as written, for the places of errors

  /// Returns the folder of the configs.
  std::string root() const;

  /// Returns a problem with a key of an entry, such as "matrix.ranks", at its place in the file.
  ConfigProblem problem_at(std::size_t entry, const std::string& section, const std::string& key,
                           const std::string& message) const;
};

/// Reads a suite. Throws ConfigError with all problems of the file, with file, line and key: among them configs that do
/// not exist, and patterns that match none.
Suite load_suite(const std::string& path);

}  // namespace phalanx::regress
