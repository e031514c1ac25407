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

/// How replicas agree. The engine knows nothing else about distribution.
///
/// Whatever the result of a run depends on is pure virtual: a strategy answers for each of these. What many of them
/// answer alike is in bases that a strategy derives from where they are true of it: ReplicatedSynchronizer and
/// GradientSynchronizer (engine/sync/replicated_synchronizer.h).
class Synchronizer {
 public:
  virtual ~Synchronizer() = default;

  /// What takes the gradients of this rank's slices, where the strategy has them applied elsewhere: instead of the
  /// optimizer that the config names, with a learning rate of its own. Null: that optimizer updates the slices.
  virtual std::unique_ptr<Optimizer> make_optimizer() { return nullptr; }

  /// Makes replicas equal and says what this rank updates from now on. Collective.
  virtual std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) = 0;

  /// The optimizer's state for these slices, after it was made. A strategy that changes parameters behind the
  /// optimizer's back may change its state too. Collective.
  virtual void attach_state(const std::vector<StateTensor>& state) = 0;

  /// Parameters were written by somebody else, alike on all ranks or as a run had left them: what the strategy
  /// remembers of them begins anew.
  virtual void begin_anew() = 0;

  /// After each backward, of which a step that accumulates has several: as many on all ranks. Of a strategy that frees
  /// gradients (StrategyTraits::frees_gradients), which has nothing of its own in parameters' grad after it.
  virtual void after_backward() {}

  /// What calls the model's blocks from now on, in forward and where activations are computed again, for a strategy
  /// that has values only where they are needed (StrategyTraits::shards_values). Null: nobody has to. Before attach();
  /// must not be called after the strategy's end.
  virtual BlockRunner run_blocks(const std::vector<Block>& /*blocks*/) { return nullptr; }

  /// Calls `body` while all parameters have their values. Collective.
  virtual void with_values(const std::function<void()>& body) { body(); }

  /// All parameters get their values for good, and blocks need nobody to call them. After it the strategy has nothing
  /// more to do with them. Collective.
  virtual void keep_values() {}

  /// After it, the slices' gradients are the agreed ones.
  virtual void before_update(std::int64_t step) = 0;

  /// Returns the ranks whose gradients the last before_update() has combined, or null if the slices have the gradients
  /// of this rank alone. All ranks of such a group make the same update, and all of them meet in this step. There is
  /// one entry, or one for each group of parameters (GroupedSynchronizer).
  virtual std::vector<CommunicatorPtr> gradient_groups() const = 0;

  /// After it, replicas hold what the strategy promises.
  virtual void after_update(std::int64_t step) = 0;

  /// Whether the replicas are to be equal now, bit for bit; after after_update().
  virtual bool replicas_equal() const = 0;

  /// Sums that ranks have made over their slices become sums over all parameters of the replica, alike on all ranks
  /// that have the same one. sums: [k] double.
  virtual void sum_over_slices(at::Tensor& sums) = 0;

  /// After it, all ranks have the values that each of them has in its slices: for changes outside of updates.
  /// Collective.
  virtual void share_values() = 0;

  /// What the strategy itself remembers, complete between two steps; as many tensors at any time. Written where a run
  /// goes on.
  virtual StateDict state() = 0;

  /// After the last step. Collective.
  virtual void finish() = 0;

  /// What this rank has counted of its own, by name, for the summary of the run; after finish().
  virtual Figures figures() const { return {}; }
};

}  // namespace phalanx
