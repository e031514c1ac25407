// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/optim/optimizer.h"
#include "engine/strategies/strategy_extensions.h"
#include "framework/base/metrics.h"
#include "framework/base/state_dict.h"
#include "framework/comm/communicator.h"
#include "framework/partition/flat_parameters.h"
#include "framework/partition/slice.h"

namespace phalanx {

/// The method by which replicas are kept in agreement. The engine knows nothing else about distribution.
///
/// Functions that affect the result of a run are pure virtual, so that every strategy has to define them. Definitions
/// that many strategies share are in base classes that a strategy derives from if they apply to it: ReplicatedStrategy
/// and GradientStrategy (engine/strategies/replicated_strategy.h). Functions that only some strategies have are in
/// separate interfaces, which callers ask for with extensions().
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Makes replicas equal and returns the slices that this rank updates from now on. Collective.
  virtual std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) = 0;

  /// Passes the optimizer's state for these slices, once it exists. A strategy that changes parameters outside of the
  /// optimizer may change its state too. Collective.
  virtual void attach_state(const std::vector<StateTensor>& state) = 0;

  /// Called after other code has written the parameters, either the same values on all ranks or values from a previous
  /// run. The strategy resets the state that depends on them.
  virtual void reset() = 0;

  /// Completes the gradients of a step. Afterwards the slices hold the gradients that the optimizer gets.
  virtual void before_update(std::int64_t step) = 0;

  /// Returns the ranks whose gradients the last before_update() has combined, or null if the slices have the gradients
  /// of this rank alone. All ranks of such a group make the same update, and all of them meet in this step. There is
  /// one entry, or one for each group of parameters (GroupedStrategy).
  virtual std::vector<CommunicatorPtr> gradient_groups() const = 0;

  /// Called after the optimizer's update. Afterwards replicas are in the state that the strategy guarantees.
  virtual void after_update(std::int64_t step) = 0;

  /// Returns true if the replicas must be equal now, bit for bit. Valid after after_update().
  virtual bool replicas_equal() const = 0;

  /// Turns sums that each rank has computed over its slices into sums over all parameters of the replica. All ranks
  /// with the same replica get the same result. sums: [k] double.
  virtual void sum_over_slices(at::Tensor& sums) = 0;

  /// Gives all ranks the values that each of them has in its slices, after changes outside of updates. Collective.
  virtual void gather_slices() = 0;

  /// Returns the strategy's own state, which is complete between two steps and always has the same number of tensors.
  /// Resuming a run writes into these tensors.
  virtual StateDict state() = 0;

  /// Called after the last step. Collective.
  virtual void finish() = 0;

  /// Returns the optional interfaces that this strategy implements, which are always the same and live as long as the
  /// strategy. They match its traits; make_strategy() throws std::logic_error if they do not.
  virtual StrategyExtensions extensions() { return {}; }

  /// Returns this rank's own counters by name, for the summary of the run. Valid after finish().
  virtual Metrics metrics() const { return {}; }
};

/// Calls `body` while all parameters have their values, which they always have unless the strategy shards them.
/// Collective.
inline void with_full_parameters(Strategy& strategy, const std::function<void()>& body) {
  auto* const sharded = strategy.extensions().shards_parameters;
  sharded ? sharded->with_full_parameters(body) : body();
}

}  // namespace phalanx
