// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

#include "engine/strategies/canonical_sum.h"
#include "engine/strategies/replicated_strategy.h"

namespace phalanx {

/// Synchronous data parallelism whose result has the same bits on any number of ranks: the mean of the gradients of
/// virtual shards, which VirtualShards computes, summed in one fixed tree. Configs cannot select this strategy, because
/// it needs a matching step.
/// Wire: see CanonicalSum.
class Invariant final : public GradientStrategy {
 public:
  /// `local_gradients` gets the gradients of each shard of this rank (see StrategyContext); may be null.
  Invariant(CommunicatorPtr group, int shards, std::function<void(const at::Tensor& gradients)> local_gradients = {})
      : group_(std::move(group)), shards_(shards), local_gradients_(std::move(local_gradients)) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) override;

  /// Adds the current gradients for `shard` to the sums, and zeroes them.
  void take_gradients(int shard);

  void before_update(std::int64_t step) override;
  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }

 private:
  CommunicatorPtr group_;
  int shards_;
  std::function<void(const at::Tensor&)> local_gradients_;
  std::vector<Slice> slices_;
  std::vector<CanonicalSum> sums_;
};

}  // namespace phalanx
