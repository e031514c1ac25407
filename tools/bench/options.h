#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::bench {

struct Options {
  std::vector<std::string> ops{"all_reduce"};           // all_reduce, broadcast, barrier
  std::vector<std::string> backends{"shm", "openmpi"};  // the first is what the others are compared with
  std::vector<std::int64_t> bytes{1 << 10, 64 << 10, 1 << 20, 16 << 20};
  std::vector<std::string> memories{"registered", "private"};
  int ranks = 2;
  int rounds = 40;        // samples of each row
  double budget_ms = 10;  // about how long one sample takes
  std::string json;       // file for the rows; empty: none
};

/// Reads --op, --backends, --bytes, --memory, --ranks, --rounds, --json. Throws ConfigError.
Options parse_options(int argc, char** argv);

}  // namespace phalanx::bench
