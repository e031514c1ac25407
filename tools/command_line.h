// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/launch/init_method.h"
#include "tools/command/arguments.h"

namespace phalanx {

/// The parsed command line of train.
struct CommandLine {
  std::string config{};                  // FILE, or --config FILE
  std::vector<std::string> overrides{};  // key=value, or --set key=value; may be repeated
  std::string run_dir{};                 // --run_dir DIR; empty: runs/<name>-<time>. --resume X has no member: it is
                                         // appended to overrides as checkpoint.resume=X, so it takes precedence.
  InitMethod init{};                     // --init_method, --rank, --world_size
  std::string join{};                    // --join ADDRESS; empty: joins no job
  int join_ranks = 1;                    // --ranks, with --join
  bool print_config = false;
  bool help_config = false;
  std::string help_section{};  // --help_config SECTION; empty: all sections
};

/// Parses the flags of train. Throws ConfigError for an unknown flag or argument; `keys` are the keys of a config,
/// which the error may suggest.
CommandLine parse_command_line(const Arguments& arguments, const std::vector<std::string>& keys = {});

}  // namespace phalanx
