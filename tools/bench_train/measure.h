// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench_train/hosts.h"
#include "tools/bench_train/options.h"

namespace phalanx::bench_train {

/// The times of one step of a system in one round.
struct StepTime {
  double step_ms = 0;
  double backward_ms = 0;
  double busy_ms = 0;  // CPU time of the machine, including the kernel, divided by the ranks
};

/// The gain of a step from overlapping communication with backward, relative to the largest possible gain. Medians over
/// the rounds.
struct HiddenShare {
  /// The largest possible gain here is the cost of communication after backward, or the time of backward in the limit,
  /// whichever is less.
  double of_communication = 0;
  /// Relative to the part of that cost in which a rank waits rather than computes: a rank that has one core cannot hide
  /// the CPU time of communication. Absent if ranks do not wait longer than in the limit, and if they have more cores.
  std::optional<double> of_waiting{};
};

/// Computes the share of the communication cost that overlapping hides. The cost is the time of a step of `after`,
/// which communicates after backward, minus the time of a step of `limit`, which sends nothing. All three must have the
/// same rounds. Absent if communication costs nothing in any round.
std::optional<HiddenShare> hidden_share(const std::vector<StepTime>& after, const std::vector<StepTime>& overlapped,
                                        const std::vector<StepTime>& limit);

/// The machine that runs the systems.
struct Machine {
  std::string processor;   // name of the model
  std::string vectors;     // vector instructions that LibTorch uses: "AVX2"
  double matrix_peak = 0;  // floating-point operations per second of one core (doctor::measure_matrix_peak)
};

/// One row of the result.
struct Row {
  std::string workload, system;
  int ranks = 0;
  std::string kernels{};                    // kernels that its ranks compute with; empty for peers
  double samples_per_second = 0;            // all ranks together, median of the turns
  double p10 = 0, p90 = 0;                  // quantiles of samples_per_second
  double step_ms = 0;                       // time of one step, median
  std::optional<double> backward_ms{};      // backward of one step, median; absent if it is not timed separately
  double busy_ms = 0;                       // CPU time of the machine per step, divided by the ranks; median
  std::optional<double> ratio{};            // rate relative to the base, median of the rounds
  std::optional<double> ratio_to_limit{};   // rate relative to (cpp_)no_communication, median of the rounds
  std::optional<double> operations{};       // per step, all ranks together (flops_of_step)
  std::optional<double> of_peak{};          // `operations` in step_ms, relative to the peak of one core per rank
  std::optional<HiddenShare> hidden{};      // only for phalanx_overlapped
  std::optional<double> seconds_to_loss{};  // of training (TimeToLoss)
  std::optional<std::int64_t> steps_to_loss{};
  std::vector<double> losses{};  // losses of all steps; empty if no loss is requested
};

struct Measured {
  std::vector<Row> rows;
  std::vector<std::string> failures;  // reasons why systems that were started have no row
};

/// Trains each workload with all systems, interleaved in rounds, so that a change in the machine's load affects all of
/// them; each round has a different random order. A system that fails is omitted from then on. `keep` receives all rows
/// so far after each workload. `peak`: Machine::matrix_peak. Throws ConfigError, and Error if a system cannot be
/// started.
Measured measure(const Options& options, const Hosts& hosts, double peak,
                 const std::function<void(const std::vector<Row>&)>& keep);

}  // namespace phalanx::bench_train
