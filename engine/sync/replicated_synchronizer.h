// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/sync/synchronizer.h"

namespace phalanx {

/// A strategy each of whose ranks updates all parameters: its slices are all buckets. Sums over them are sums over the
/// replica, and no rank has values in them that it would have to give to others.
class ReplicatedSynchronizer : public Synchronizer {
 public:
  void sum_over_slices(at::Tensor&) final {}
  void share_values() final {}
};

/// One that agrees on gradients, the same bits on all ranks, and on nothing else: replicas begin equal and get the same
/// updates, so that they are equal after each. It remembers nothing of the parameters, and nothing at all unless it
/// says so.
class GradientSynchronizer : public ReplicatedSynchronizer {
 public:
  void attach_state(const std::vector<StateTensor>&) final {}
  void begin_anew() final {}
  void after_update(std::int64_t) final {}
  bool replicas_equal() const final { return true; }
  StateDict state() override { return {}; }
  void finish() override {}
};

}  // namespace phalanx
