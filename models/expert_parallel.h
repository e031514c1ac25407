// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/communicator.h"
#include "framework/parallel/placement.h"

namespace phalanx {

/// A layer whose experts can be divided among ranks, and whose results depend on the whole batch of all ranks.
class ExpertParallel {
 public:
  virtual ~ExpertParallel() = default;

  /// Keeps this rank's share of the experts and returns its placements, by names relative to the layer. Each token is
  /// sent to the rank of `experts` that has its expert. `batch` has the ranks that share the global batch. May be
  /// called once. Throws ConfigError if the experts cannot be divided.
  virtual Placements divide_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) = 0;

  /// Returns the names of the options whose results depend on counts over the global batch, for messages. Steps that
  /// compute a rank's samples in several parts would change these results. Empty if there are none.
  virtual std::string counts_over_batch() const = 0;
};

}  // namespace phalanx
