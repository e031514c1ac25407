// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/communicator.h"

namespace phalanx {

/// A model that can divide the activations between the layers of its tensor plan by position (Korthikanti et al. 2022,
/// arXiv:2205.05198; models/tensor_parallel_layer.h).
class SequenceParallel {
 public:
  virtual ~SequenceParallel() = default;

  /// From now on, each rank of `group`, the tensor group, has an equal part of the positions between sharded layers.
  /// Inputs and outputs stay whole. If `overlap`, the exchange of positions overlaps with the matrix products of the
  /// layers. Must be called once, after the model was sharded by its own plan.
  virtual void enable_sequence_parallel(const CommunicatorPtr& group, bool overlap) = 0;
};

}  // namespace phalanx
