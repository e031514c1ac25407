// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/optim/optimizer.h"
#include "engine/strategies/strategies.h"
#include "engine/strategies/unused_parameters.h"
#include "framework/base/named_tensors.h"
#include "framework/partition/flat_parameters.h"
#include "phalanx/distributed_data_parallel.h"
#include "phalanx/internal/active_ranks.h"
#include "phalanx/internal/gradient_views.h"

namespace phalanx {

/// The parameters of a DistributedDataParallel in buckets, and what the ranks exchange for them in a step.
///
/// A step consists of begin(), the arrival of gradients during backward, and complete(). Ranks without data for a step
/// call begin() and complete() alone. All functions but those that say otherwise are collective.
class Exchange {
 public:
  using Options = DistributedDataParallelOptions;

  /// Moves the parameters into buckets. `accumulates`: true during backwards that are not exchanged. Throws
  /// ConfigError.
  Exchange(const NamedTensors& parameters, CommunicatorPtr group, const Options& options,
           std::shared_ptr<const bool> accumulates);

  /// Gives all ranks the values of rank 0. Hooks that see the gradients of a parameter before the strategy does must
  /// exist already. Must be called once, and may be called again for an optimizer that needs another cut.
  void attach(Cut cut);

  /// Takes the gradient of a parameter that has just been accumulated. Not collective.
  void take(std::size_t bucket, std::size_t parameter);

  /// Launches what a step sends first.
  void begin(bool with_data);

  /// Completes the gradients of step `step`. Returns the lowest rank with data in this step. If no rank has any, does
  /// nothing and returns nothing.
  std::optional<int> complete(std::int64_t step, bool with_data);

  /// Moves gradients that the program has assigned since backward into the buckets. Not collective.
  void take_gradients();

  /// Zeroes the gradients of this rank. Not collective.
  void zero_gradients();

  /// Throws Error if the program has moved a parameter out of its bucket. Not collective.
  void require_values_in_buckets() const;

  /// Gives all ranks the values of `root`.
  void broadcast_values(int root);

  /// Returns true if optimizers may update the parameters as soon as backward has ended, and nothing follows.
  bool ends_with_backward() const;

  const CommunicatorPtr& group() const { return group_; }
  const Strategies::Choice& choice() const { return choice_; }
  const StrategyTraits& traits() const { return traits_; }
  Strategy& strategy() { return *strategy_; }
  const FlatParameters& parameters() const { return parameters_; }
  const std::vector<Slice>& slices() const { return slices_; }  // that this rank updates
  const std::set<std::string>& unused() const;                  // names of the parameters that no rank has used

 private:
  void divide_by_active_ranks();

  Options options_;
  CommunicatorPtr group_;
  Strategies::Choice choice_;
  StrategyTraits traits_;
  FlatParameters parameters_;
  std::unique_ptr<Strategy> strategy_;
  std::vector<Slice> slices_;
  std::optional<GradientViews> views_;      // absent if the strategy frees gradients
  std::optional<UnusedParameters> unused_;  // absent unless find_unused_parameters
  std::optional<ActiveRanks> active_;       // absent unless uneven_inputs
};

}  // namespace phalanx
