// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/communicator.h"
#include "framework/partition/placement.h"

namespace phalanx {

/// A model with layers of experts, which ranks can divide. These layers communicate with all ranks that have a part of
/// a batch. A network implements this with partition_experts() and counts_over_batch() of
/// models/expert_parallel_layer.h.
class ExpertParallel {
 public:
  virtual ~ExpertParallel() = default;

  /// Keeps this rank's share of the experts, which are sharded among the ranks of `experts`, and returns the placements
  /// of the sharded parameters, or none if there is only one such rank. `batch` has the ranks that share the global
  /// batch, over which the load of experts is balanced. Must be called once, before the model is used, on all ranks.
  /// Throws ConfigError if the experts cannot be sharded.
  virtual Placements partition_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) = 0;

  /// Returns the names of the options whose results depend on counts over the global batch, for messages. Steps that
  /// compute a rank's samples in several parts would change these results. May be empty.
  virtual std::string counts_over_batch() const = 0;
};

/// Explains why a model with such options cannot compute a batch in parts: "computes a batch in parts, but ...". The
/// message that it completes begins with the key that asks for parts.
std::string refusal_of_parts(const std::string& model, const std::string& options);

}  // namespace phalanx
