// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// The blocks of a model whose activations are recomputed in backward.
struct CheckpointedSegments {
  std::int64_t count = 0;  // 0: all activations are kept
  bool on_host = false;    // keeps activations of devices in memory of the host (framework/parallel/host_copy.h)
};

/// A model that can recompute activations in backward instead of keeping them. Implemented by RecomputableChain
/// (models/chain_network.h).
class ActivationCheckpointing {
 public:
  virtual ~ActivationCheckpointing() = default;

  /// From now on, in training, divides the blocks between the first and the last one into `segments.count` runs, at
  /// most one per block. Only the input of each run is kept; the rest is recomputed in backward
  /// (framework/parallel/checkpointed.h). Returns false if there are no blocks between the first and the last one.
  virtual bool checkpoint_activations(const CheckpointedSegments& segments) = 0;
};

}  // namespace phalanx
