// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/command/arguments.h"

namespace phalanx::tune {

struct Options {
  std::string backend = "auto";  // as in a config
  std::vector<std::string> ops{};
  std::vector<std::int64_t> bytes{};  // ascending
  std::string memory = "registered";  // as in tools:bench
  int ranks = 2;
  std::vector<std::string> hosts{};  // hosts on which mpirun starts ranks; empty: this host
  int rounds = 20;                   // samples of each row
  double budget_ms = 5;              // approximate duration of one sample
  std::string output = "tuned.json";
};

/// Parses --backend, --ops, --bytes, --memory, --ranks, --hosts, --rounds, --budget_ms and --output. Throws
/// ConfigError.
Options parse_options(const Arguments& arguments);

}  // namespace phalanx::tune
