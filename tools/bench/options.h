// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phalanx::bench {

/// What to measure, and how.
struct Options {
  std::vector<std::string> ops{"all_reduce"};
  std::vector<std::string> backends{"shm", "openmpi"};  // the first is what the others are compared with; openmpi is a
                                                        // peer, measured in this place
  std::vector<std::string> against{};                   // peers behind them: openmpi, gloo, torch
  std::vector<std::string> algorithms{"native"};        // of backends: native, registered names; "all": all there are
  std::vector<std::int64_t> bytes{1 << 10, 64 << 10, 1 << 20, 16 << 20};
  std::vector<std::string> memories{"registered", "private"};
  std::string device = "cpu";  // where tensors are: cpu, or a kind of device; of backends alone
  int ranks = 2;
  int rounds = 40;                 // samples of each row
  double budget_ms = 10;           // about how long one sample takes
  bool bind = false;               // rank r to core r
  std::optional<bool> progress{};  // a progress thread; absent: as the backend decides
  std::string python{};            // an interpreter that has PyTorch; empty: one is made
  std::string json{};              // file for the rows; empty: none
  std::string plot{};              // SVG file; empty: none

  bool uses(const std::string& subject) const;  // among backends or against
};

}  // namespace phalanx::bench
