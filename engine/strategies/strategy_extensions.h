// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/optim/optimizer.h"
#include "framework/base/state_dict.h"
#include "models/block.h"

namespace phalanx {

// Optional interfaces of strategies. Each belongs to a trait (StrategyTraits): a strategy implements it if and only if
// it has the trait, and returns it in Strategy::extensions().

/// Implemented by strategies whose servers apply the gradients (StrategyTraits::servers_update).
class UpdatesOnServers {
 public:
  virtual ~UpdatesOnServers() = default;

  /// Returns the object that takes the gradients of this rank's slices. It replaces the optimizer that the config
  /// names, and has its own learning rate. Must be called before Strategy::attach(); the strategy must outlive it.
  virtual std::unique_ptr<Optimizer> make_optimizer() = 0;
};

/// Implemented by strategies that free gradients (StrategyTraits::frees_gradients). Parameters have a grad only during
/// backward.
class FreesGradients {
 public:
  virtual ~FreesGradients() = default;

  /// Must be called after each backward. A step that accumulates gradients has several, the same number on all ranks.
  /// Afterwards parameters have no grad. Collective.
  virtual void after_backward() = 0;
};

/// Implemented by strategies that keep the values of parameters sharded, and gather them while they are needed
/// (StrategyTraits::shards_values).
class ShardsParameters {
 public:
  virtual ~ShardsParameters() = default;

  /// Returns the function that calls the model's blocks from now on, in forward and when activations are recomputed.
  /// Must be called before Strategy::attach(). The function must not be called after the strategy is destroyed.
  virtual BlockRunner run_blocks(const std::vector<Block>& blocks) = 0;

  /// Calls `body` while all parameters have their values. Collective.
  virtual void with_full_parameters(const std::function<void()>& body) = 0;

  /// Gives all parameters their values permanently. Blocks may then be called directly, and the strategy no longer
  /// manages the parameters. Collective.
  virtual void unshard() = 0;
};

/// The state of a run on its parameter servers, as a rank leaves it because another rank was lost.
struct LeftCentre {
  /// Ranks may be interrupted at different points. What a rank with a higher number has left is newer, or the same.
  std::int64_t order = -1;

  /// It is on the servers; false: this rank has it in memory.
  bool on_servers = false;

  /// Returns it, under the names that Strategy::state() has for it. Must not be called before all ranks that are left
  /// have left the servers. Throws CommError.
  std::function<StateDict()> read{};

  /// Removes it from the servers, where no rank needs it any more. Throws Error.
  std::function<void()> remove{};
};

/// Implemented by strategies whose ranks share values only through parameter servers (StrategyTraits::keeps_centre).
class KeepsCentre {
 public:
  virtual ~KeepsCentre() = default;

  /// Sends everything that this rank has not sent yet, and waits until it is applied. After that the strategy can only
  /// be destroyed, and its state() is empty. Not collective. A request that a server does not answer any more is
  /// logged, and counts as sent.
  virtual LeftCentre leave() = 0;

  /// Makes the strategy call `remove` on the first rank, once the servers have the values from which all ranks go on.
  virtual void succeed(std::function<void()> remove) = 0;
};

/// The optional interfaces that a strategy implements; null: it does not implement this one.
struct StrategyExtensions {
  UpdatesOnServers* updates_on_servers = nullptr;
  FreesGradients* frees_gradients = nullptr;
  ShardsParameters* shards_parameters = nullptr;
  KeepsCentre* keeps_centre = nullptr;
};

}  // namespace phalanx
