// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "framework/comm/communicator.h"
#include "framework/partition/placement.h"

namespace phalanx {

/// A layer whose experts can be sharded among ranks, and whose results depend on the whole batch of all ranks. A
/// network that has such a layer must implement ExpertParallel (models/expert_parallel.h).
class ExpertParallelLayer {
 public:
  virtual ~ExpertParallelLayer() = default;

  /// Keeps this rank's share of the experts and returns its placements, by names relative to the layer. Each token is
  /// sent to the rank of `experts` that has its expert. `batch` has the ranks that share the global batch. May be
  /// called once. Throws ConfigError if the experts cannot be sharded.
  virtual Placements partition_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) = 0;

  /// See ExpertParallel.
  virtual std::string counts_over_batch() const = 0;
};

/// Divide the experts of all such layers of a network, and return the options of these layers, which are the same in
/// every layer. A network implements ExpertParallel with these functions.
Placements partition_experts(torch::nn::Module& network, const CommunicatorPtr& experts, const CommunicatorPtr& batch);
std::string counts_over_batch(const torch::nn::Module& network);

}  // namespace phalanx
