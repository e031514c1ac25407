// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// The command line of train.
struct CommandLine {
  std::string config{};                  // --config FILE
  std::vector<std::string> overrides{};  // --set key=value, as often as one likes
  std::string run_dir{};                 // --run_dir DIR; empty: runs/<name>-<time>
                                         // --resume X is --set checkpoint.resume=X, and wins
  bool print_config = false;
  bool help_config = false;
  std::string help_section{};  // --help_config SECTION; empty: all of them
};

/// Parses main()'s words (parse_flags). Throws ConfigError for what it does not know; `keys` are those of a config, one
/// of which may have been meant.
CommandLine parse_command_line(int argc, char** argv, const std::vector<std::string>& keys = {});

}  // namespace phalanx
