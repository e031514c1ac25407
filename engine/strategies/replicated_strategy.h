// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/strategies/strategy.h"

namespace phalanx {

/// A strategy in which each rank updates all parameters: its slices are all buckets. Sums over the slices are therefore
/// already sums over the replica, and no rank has values that it would have to send to others.
class ReplicatedStrategy : public Strategy {
 public:
  void sum_over_slices(at::Tensor&) final {}
  void gather_slices() final {}
};

/// A strategy that agrees only on gradients, with the same bits on all ranks. Replicas begin equal and get the same
/// updates, so they are equal after each one. It keeps no state about the parameters, and none at all unless it
/// overrides state().
class GradientStrategy : public ReplicatedStrategy {
 public:
  void attach_state(const std::vector<StateTensor>&) final {}
  void reset() final {}
  void after_update(std::int64_t) final {}
  bool replicas_equal() const final { return true; }
  StateDict state() override { return {}; }
  void finish() override {}
};

}  // namespace phalanx
