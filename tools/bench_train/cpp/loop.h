// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/sgd.h>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

#include "tools/bench_train/cpp/job.h"
#include "tools/bench_train/cpp/network.h"

namespace phalanx::bench_train {

/// The average of the gradients over the ranks of a loop: the calls that a system adds to the loop of a single process,
/// or replaces in it.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  virtual void before_forward() {}
  virtual void before_backward() {}
  virtual void after_backward() {}
  virtual void zero_gradients(torch::optim::Optimizer& optimizer) { optimizer.zero_grad(); }
  virtual void update(torch::optim::Optimizer& optimizer) { optimizer.step(); }
};

/// The result of some steps of a rank.
struct LoopTurn {
  double seconds = 0;          // of all steps
  double backward = 0;         // of backward in these steps, until the gradients have been averaged
  std::vector<double> losses;  // one per step
};

/// A training loop as people write it with LibTorch: samples in memory, batches by indexing, torch::optim::SGD with
/// momentum 0.9. It is the same for all systems, which differ in the exchange.
class Loop {
 public:
  /// Makes the network, with the same initial values on all ranks.
  explicit Loop(const LoopJob& job);

  Network& network() { return *network_; }

  /// Uses the exchange from now on; it must exist while run() runs. Without one, each rank trains alone.
  void use(Exchange& exchange) { exchange_ = &exchange; }

  LoopTurn run(std::int64_t steps);

 private:
  double step(LoopTurn& turn);
  at::Tensor next_rows();

  LoopJob job_;
  LoopSamples samples_;
  std::shared_ptr<Network> network_;
  torch::optim::SGD optimizer_;
  Exchange none_;
  Exchange* exchange_ = &none_;
  at::Tensor order_;  // of the samples in this epoch
  std::int64_t epoch_ = -1, next_ = 0;
};

/// Reads the line "run STEPS". Returns nullopt for the line "end" and at the end of the input. Throws
/// std::runtime_error for another line.
std::optional<std::int64_t> read_turn(std::istream& in);

/// Writes the line that answers it: the JSON of turns.h.
void write_turn(const LoopTurn& turn, std::ostream& out);

/// Says "ready" and trains whenever the input says so, until it ends (turns.h).
void serve(Loop& loop, std::istream& in, std::ostream& out);

}  // namespace phalanx::bench_train
