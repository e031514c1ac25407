// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/bench_train/system.h"

namespace phalanx::bench_train {

/// What to train, and how to measure it.
struct Options {
  std::vector<std::string> workloads{"mlp"};
  std::vector<std::string> systems{"phalanx", "no_communication"};  // peers among them, behind the others
  std::string base{};                                               // the system that ratios are to; empty: none
  int ranks = 2;
  int rounds = 7;            // turns that each system gets
  double seconds = 3;        // about how long a turn takes
  double until_loss = 0;     // above 0: go on until every system has arrived there (TimeToLoss), or the rounds are over
  std::string dataset{};     // YAML of a registered dataset; empty: drawn by the program
  std::string link{};        // rate of the link between two hosts, as tc has it; empty: all ranks on this host
  std::string python{};      // an interpreter that has PyTorch; empty: one is made
  std::string jax_python{};  // the same with JAX
  std::string json{};        // file for the rows; empty: none
  bool markdown = false;     // the table as Markdown

  /// Returns true if one of the systems is of this framework.
  bool uses(Framework framework) const;
};

/// Reads the flags of bench_train. Throws ConfigError naming the flag and what it takes.
Options parse_options(int argc, char** argv);

}  // namespace phalanx::bench_train
