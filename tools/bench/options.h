// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phalanx::bench {

/// The measurement that the flags ask for.
struct Options {
  std::vector<std::string> ops{"all_reduce"};
  std::vector<std::string> backends{"shm", "openmpi"};  // the others are compared with the first; openmpi, which is a
                                                        // peer, may also be named and is measured at its position
  std::vector<std::string> against{};                   // peers to measure after them, as in --against
  std::vector<std::string> algorithms{"native"};        // native or registered names; "all": all of them
  std::vector<std::int64_t> bytes{1 << 10, 64 << 10, 1 << 20, 16 << 20};
  std::vector<std::string> memories{"registered", "private"};
  std::string device = "cpu";  // where tensors are: cpu or a kind of device; only backends support devices
  int ranks = 2;
  int rounds = 40;                 // samples of each row
  double budget_ms = 10;           // approximate duration of one sample
  bool bind = false;               // binds rank r to core r
  std::optional<bool> progress{};  // use a progress thread; absent: the backend decides
  std::string python{};            // interpreter that has PyTorch; empty: one is installed
  std::string json{};              // output file for the rows; empty: none
  std::string plot{};              // output SVG file; empty: none

  bool uses(const std::string& subject) const;  // true if it is among the backends or peers
};

}  // namespace phalanx::bench
