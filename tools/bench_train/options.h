// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/bench_train/system.h"
#include "tools/command/arguments.h"

namespace phalanx::bench_train {

/// The training and the measurement that the flags ask for.
struct Options {
  std::vector<std::string> workloads{"mlp"};
  std::vector<std::string> systems{"phalanx", "no_communication"};  // may include peers, which come last
  std::string base{};                                               // system that ratios refer to; empty: none
  int ranks = 2;
  int hosts = 1;             // 1 or 2; see link
  int rounds = 7;            // turns per system
  double seconds = 3;        // approximate duration of a turn
  double until_loss = 0;     // above 0: go on until all systems reach it (TimeToLoss) or the rounds are over
  std::string dataset{};     // YAML of a registered dataset; empty: the program draws samples
  std::string link{};        // rate of the link between two hosts, in the notation of tc; empty: all ranks on this host
  std::string python{};      // interpreter that has PyTorch; empty: one is installed
  std::string jax_python{};  // the same for JAX
  std::vector<std::string> program{};  // words that start bench_train again, as one of its ranks
  std::string json{};                  // output file for the rows; empty: none
  bool markdown = false;               // prints the table as Markdown

  /// Returns true if one of the systems is of this framework.
  bool uses(Framework framework) const;
};

/// Parses the flags of bench_train. Throws a ConfigError that names the flag and the values that it accepts.
Options parse_options(const Arguments& arguments);

}  // namespace phalanx::bench_train
