// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/optimizer.h"
#include "framework/base/state_dict.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"
#include "framework/parallel/slice.h"
#include "models/block.h"

namespace phalanx {

using Figures = std::vector<std::pair<std::string, double>>;

/// The method by which replicas are synchronized. The engine knows nothing else about distribution.
///
/// Functions that affect the result of a run are pure virtual, so that every strategy has to define them. Definitions
/// that many strategies share are in base classes that a strategy derives from if they apply to it:
/// ReplicatedSynchronizer and GradientSynchronizer (engine/sync/replicated_synchronizer.h).
class Synchronizer {
 public:
  virtual ~Synchronizer() = default;

  /// Returns the object that takes the gradients of this rank's slices if the strategy has them applied by servers. It
  /// replaces the optimizer that the config names, and has its own learning rate. Returns null if that optimizer
  /// updates the slices.
  virtual std::unique_ptr<Optimizer> make_optimizer() { return nullptr; }

  /// Makes replicas equal and returns the slices that this rank updates from now on. Collective.
  virtual std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) = 0;

  /// Passes the optimizer's state for these slices, once it exists. A strategy that changes parameters outside of the
  /// optimizer may change its state too. Collective.
  virtual void attach_state(const std::vector<StateTensor>& state) = 0;

  /// Called after other code has written the parameters, either the same values on all ranks or values from a previous
  /// run. The strategy resets the state that depends on them.
  virtual void begin_anew() = 0;

  /// Called after each backward. A step that accumulates gradients has several, the same number on all ranks.
  /// Implemented by strategies that free gradients (StrategyTraits::frees_gradients), after which parameters have no
  /// grad.
  virtual void after_backward() {}

  /// Returns the function that calls the model's blocks from now on, in forward and when activations are recomputed,
  /// for a strategy that has values only while they are needed (StrategyTraits::shards_values). Null if blocks are
  /// called directly. Must be called before attach(). The function must not be called after the strategy is destroyed.
  virtual BlockRunner run_blocks(const std::vector<Block>& /*blocks*/) { return nullptr; }

  /// Calls `body` while all parameters have their values. Collective.
  virtual void with_values(const std::function<void()>& body) { body(); }

  /// Gives all parameters their values permanently. Blocks may then be called directly, and the strategy no longer
  /// manages the parameters. Collective.
  virtual void keep_values() {}

  /// Completes the gradients of a step. Afterwards the slices hold the synchronized gradients.
  virtual void before_update(std::int64_t step) = 0;

  /// Returns the ranks whose gradients the last before_update() has combined, or null if the slices have the gradients
  /// of this rank alone. All ranks of such a group make the same update, and all of them meet in this step. There is
  /// one entry, or one for each group of parameters (GroupedSynchronizer).
  virtual std::vector<CommunicatorPtr> gradient_groups() const = 0;

  /// Called after the optimizer's update. Afterwards replicas are in the state that the strategy guarantees.
  virtual void after_update(std::int64_t step) = 0;

  /// Returns true if the replicas must be equal now, bit for bit. Valid after after_update().
  virtual bool replicas_equal() const = 0;

  /// Turns sums that each rank has computed over its slices into sums over all parameters of the replica. All ranks
  /// with the same replica get the same result. sums: [k] double.
  virtual void sum_over_slices(at::Tensor& sums) = 0;

  /// Gives all ranks the values that each of them has in its slices, after changes outside of updates. Collective.
  virtual void share_values() = 0;

  /// Returns the strategy's own state, which is complete between two steps and always has the same number of tensors.
  /// Resuming a run writes into these tensors.
  virtual StateDict state() = 0;

  /// Called after the last step. Collective.
  virtual void finish() = 0;

  /// Returns this rank's own counters by name, for the summary of the run. Valid after finish().
  virtual Figures figures() const { return {}; }
};

}  // namespace phalanx
