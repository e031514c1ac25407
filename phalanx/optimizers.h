// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "phalanx/distributed_data_parallel.h"
#include "phalanx/world.h"

namespace phalanx {

/// Gives all ranks the state and the settings (learning rates, ...) of `root`'s optimizer, which must have the same
/// parameters in the same order. For a program that loads a checkpoint on one rank, or after join(). Collective.
void broadcast_optimizer_state(torch::optim::Optimizer& optimizer, World& world, int root = 0);

struct FusedOptimizerOptions {
  /// Keys of the optimizer's section in a config (docs/training.md), with values as they are written there: {{"lr",
  /// "0.001"}, {"weight_decay", "0.01"}}.
  std::map<std::string, std::string> keys{};

  /// Limits of the gradients: of the norm of all of them, and of each element; 0: none. With strategy sharded,
  /// torch::nn::utils::clip_grad_norm_() would see only a part of them on each rank.
  double clip_norm = 0;
  double clip_value = 0;
};

/// An optimizer of Phalanx's own, which updates the buckets of a DistributedDataParallel as a whole instead of one
/// parameter after the other, and zeroes the gradients in the same pass. With strategy sharded it updates only this
/// rank's part and has state for that part only. Results are the same as with LibTorch's optimizers, where LibTorch has
/// them.
///
///     phalanx::FusedOptimizer optimizer(ddp, "adamw", {.keys = {{"lr", "0.001"}, {"weight_decay", "0.01"}}});
///     loss.backward();
///     optimizer.step();  // no zero_grad(), no after_step()
class FusedOptimizer {
 public:
  using Options = FusedOptimizerOptions;

  /// `name`: sgd, adam, adamw, lion, lamb, muon, ... (docs/training.md). A DistributedDataParallel has at most one
  /// FusedOptimizer at a time, which must not outlive it. Collective. Throws ConfigError for unknown names or keys.
  FusedOptimizer(DistributedDataParallel& ddp, const std::string& name, const Options& options = {});
  ~FusedOptimizer();
  FusedOptimizer(const FusedOptimizer&) = delete;
  FusedOptimizer& operator=(const FusedOptimizer&) = delete;

  /// Clips the gradients, updates the parameters, zeroes the gradients, and completes the strategy's step. Parameters
  /// that no rank has used are skipped with find_unused_parameters. Collective.
  void step();

  /// Zeroes the gradients, which step() does too.
  void zero_grad();

  /// Returns the norm of all gradients in the last step before they were clipped. NaN without `clip_norm`.
  double gradient_norm() const;

  double learning_rate() const;
  void set_learning_rate(double rate);
  std::int64_t steps() const;  // taken so far

 private:
  friend void save(FusedOptimizer& optimizer, const std::string& path, World& world);
  friend void load(FusedOptimizer& optimizer, const std::string& path, World& world);
  class Updates;

  std::unique_ptr<Updates> updates_;
};

}  // namespace phalanx
