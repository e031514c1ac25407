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
};

/// Parses main()'s words (parse_flags). Throws ConfigError for what it does not know.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace phalanx
