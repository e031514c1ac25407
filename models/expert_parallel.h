// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/communicator.h"
#include "framework/parallel/placement.h"

namespace phalanx {

/// Layers whose experts can be divided among ranks, and which look at what all ranks do with a batch.
class ExpertParallel {
 public:
  virtual ~ExpertParallel() = default;

  /// Keeps this rank's share of the experts, and says which it is, by names relative to the layer; tokens go to the
  /// rank of `experts` that has their expert. `batch`: the ranks that have a part of the global batch. Once. Throws
  /// ConfigError where the experts cannot be divided.
  virtual Placements divide_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) = 0;

  /// Returns the names of the options whose results depend on counts over the global batch, for messages. Steps that
  /// compute a rank's samples in several parts would change these results. Empty if there are none.
  virtual std::string counts_over_batch() const = 0;
};

}  // namespace phalanx
