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
  double busy_ms = 0;  // CPU time of the machine, the kernel's included, divided by the ranks
};

/// The gain of a step from overlapping communication with backward, relative to the largest gain that is possible.
/// Medians over the rounds.
struct HiddenShare {
  /// The largest possible gain here is the cost of communication after backward, or the time of backward in the limit,
  /// whichever is less.
  double of_communication = 0;
  /// Of that part of its cost in which a rank waits, not computes: CPU time of communication cannot be hidden by a rank
  /// that has one core. Absent where ranks do not wait more than in the limit, and where they have more cores.
  std::optional<double> of_waiting{};
};

/// What communication costs is what a step of `after`, which communicates after backward, takes longer than one of
/// `limit`, where nothing is sent; all three have done the same rounds. Absent where it costs nothing in any.
std::optional<HiddenShare> hidden_share(const std::vector<StepTime>& after, const std::vector<StepTime>& overlapped,
                                        const std::vector<StepTime>& limit);

/// The machine that runs the systems.
struct Machine {
  std::string processor;   // the model's name
  std::string vectors;     // vector instructions that LibTorch uses: "AVX2"
  double matrix_peak = 0;  // floating-point operations a second of one core (doctor::measure_matrix_peak)
};

/// One line of the result.
struct Row {
  std::string workload, system;
  int ranks = 0;
  std::string kernels{};                    // that its ranks compute with; empty for peers
  double samples_per_second = 0;            // of all ranks together, median of the turns
  double p10 = 0, p90 = 0;                  // of the same
  double step_ms = 0;                       // of one step, median
  std::optional<double> backward_ms{};      // likewise; none where it is not computed apart
  double busy_ms = 0;                       // of one step: CPU time of the machine, divided by the ranks; median
  std::optional<double> ratio{};            // to the base, median of the rounds
  std::optional<double> ratio_to_limit{};   // to no_communication, likewise
  std::optional<double> operations{};       // of one step, all ranks together (operations_of_step)
  std::optional<double> of_peak{};          // these in step_ms, as a share of the peak of a core for each rank
  std::optional<HiddenShare> hidden{};      // of phalanx_overlapped
  std::optional<double> seconds_to_loss{};  // of training (TimeToLoss)
  std::optional<std::int64_t> steps_to_loss{};
  std::vector<double> losses{};  // of all steps, where a loss is asked for
};

struct Measured {
  std::vector<Row> rows;
  std::vector<std::string> failures;  // why systems that were started have no row
};

/// Trains each workload by all systems, in rounds in which they take turns, so that a change of the machine's mood
/// meets them all; each round is in another, random order. A system that fails is left out from then on. `keep` sees
/// all rows so far after each workload. `peak`: Machine::matrix_peak. Throws ConfigError, and Error when a system
/// cannot be started.
Measured measure(const Options& options, const Hosts& hosts, double peak,
                 const std::function<void(const std::vector<Row>&)>& keep);

}  // namespace phalanx::bench_train
