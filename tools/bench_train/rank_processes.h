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

/// The result of one turn of a system.
struct Turn {
  std::int64_t steps = 0;
  double seconds = 0;                        // time of the slowest rank
  std::optional<double> backward_seconds{};  // sum of the steps, mean of the ranks; nullopt if not timed separately
  double busy_seconds = 0;                   // CPU time of the machine during the turn, all ranks together
  std::vector<double> losses;                // one per step, mean of the ranks
};

/// Settings that all systems of a comparison share.
struct Setting {
  const Workload& workload;
  DataFiles data;
  int ranks = 2;
  const Hosts& hosts;
  std::vector<std::string> program;  // words that start one of our ranks, before --run_as_rank=FILE
                                     // or --run_loop=JOB
  std::string python;                // interpreter of peers in PyTorch
  std::string jax_python;            // interpreter of peers in JAX
  std::string folder;                // parent folder; each system has a subfolder for its files
};

/// The ranks of a system, which are processes. They train when told to, and sleep otherwise.
class RankProcesses {
 public:
  /// Starts the ranks and waits until they are ready. Throws ConfigError for options that do not fit, and Error if a
  /// rank ends.
  RankProcesses(const System& system, const Setting& setting);

  /// Ends the ranks.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /// Throws Error if a rank ends, or does not answer within minutes.
  Turn run(std::int64_t steps);

  const System& system() const { return system_; }

  /// Returns the kernels that its ranks compute with, as named by kernels::kernels_in_use(); empty for a peer.
  const std::string& kernels() const { return kernels_; }

 private:
  const System& system_;
  std::vector<std::unique_ptr<bench::Child>> ranks_;
  std::string kernels_;
};

}  // namespace phalanx::bench_train
