// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "framework/base/state_dict.h"
#include "phalanx/distributed_data_parallel.h"
#include "phalanx/world.h"

namespace phalanx {

/// Gives all ranks the state and the settings (learning rates, ...) of `root`'s optimizer, which must have the same
/// parameters in the same order. For a program that loads a checkpoint on one rank, or after join(). Collective.
void broadcast_optimizer_state(torch::optim::Optimizer& optimizer, World& world, int root = 0);

/// An optimizer of Phalanx's own, which updates the buckets of a DistributedDataParallel as a whole instead of one
/// parameter after the other, and zeroes the gradients in the same pass. With strategy sharded it updates only this
/// rank's part and has state for that part only. Results are those of LibTorch's optimizers, where LibTorch has them.
///
///     phalanx::FusedOptimizer optimizer(ddp, "adamw", {{"lr", "0.001"}, {"weight_decay", "0.01"}});
///     loss.backward();
///     optimizer.step();  // no zero_grad(), no after_step()
class FusedOptimizer {
 public:
  /// `name` and `options` are those of a config's `optimizer` section (docs/training.md): sgd, adam, adamw, lion, lamb,
  /// muon, ... A DistributedDataParallel has at most one FusedOptimizer, which must not outlive it. Collective. Throws
  /// ConfigError for unknown names or keys.
  FusedOptimizer(DistributedDataParallel& ddp, const std::string& name,
                 const std::map<std::string, std::string>& options = {});
  ~FusedOptimizer();
  FusedOptimizer(const FusedOptimizer&) = delete;
  FusedOptimizer& operator=(const FusedOptimizer&) = delete;

  /// Updates the parameters with their gradients, zeroes the gradients, and completes the strategy's step. Collective.
  void step();

  /// Zeroes the gradients, which step() does too.
  void zero_grad();

  /// Scales the gradients of all parameters so that their norm is at most `max_norm`, before step(). Returns the norm
  /// before. torch::nn::utils::clip_grad_norm_() sees only this rank's part with strategy sharded. Collective.
  double clip_grad_norm(double max_norm);

  double learning_rate() const;
  void set_learning_rate(double rate);
  std::int64_t steps() const;

 private:
  friend void save(FusedOptimizer& optimizer, const std::string& path, World& world);
  friend void load(FusedOptimizer& optimizer, const std::string& path, World& world);
  class Updates;

  std::unique_ptr<Updates> updates_;
};

}  // namespace phalanx
