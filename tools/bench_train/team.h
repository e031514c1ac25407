// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/child.h"
#include "tools/bench_train/data.h"
#include "tools/bench_train/hosts.h"
#include "tools/bench_train/system.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// What a system has done in a turn.
struct Turn {
  std::int64_t steps = 0;
  double seconds = 0;                        // of the slowest rank
  std::optional<double> backward_seconds{};  // of all steps, mean of the ranks; nullopt if it is not timed apart
  double busy_seconds = 0;                   // CPU time that the machine has taken meanwhile, all ranks together
  std::vector<double> losses;                // of each step, mean of the ranks
};

/// What all systems of a comparison have in common.
struct Setting {
  const Workload& workload;
  DataFiles data;
  int ranks = 2;
  const Hosts& hosts;
  std::string python;      // of peers in PyTorch
  std::string jax_python;  // of those in JAX
  std::string folder;      // for files of the systems, each in a folder of its own
};

/// The ranks of a system, which are processes. They train when they are told to, and sleep otherwise.
class Team {
 public:
  /// Starts them and waits until they are ready. Throws ConfigError for options that do not fit, Error when a rank
  /// ends.
  Team(const System& system, const Setting& setting);

  /// Throws Error when a rank ends, or does not answer within minutes.
  Turn run(std::int64_t steps);

  const System& system() const { return system_; }

  /// The kernels that its ranks compute with, as kernels::kernels_in_use() has them; empty for a peer.
  const std::string& kernels() const { return kernels_; }

 private:
  const System& system_;
  std::vector<std::unique_ptr<bench::Child>> ranks_;
  std::string kernels_;
};

}  // namespace phalanx::bench_train
