// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/communicator.h"

namespace phalanx {

/// A model that can compute a part of each sequence together with the ranks that have the other parts.
class ContextParallel {
 public:
  virtual ~ContextParallel() = default;

  /// From now on, inputs and outputs have only this rank's positions of each sequence, as chosen by shard_sequence()
  /// (framework/partition/sequence_shard.h), and the ranks of `group` compute together. Must be called once, before the
  /// model is used, on all ranks. Throws ConfigError if an option of the model prevents it.
  virtual void enable_context_parallel(const CommunicatorPtr& group) = 0;
};

}  // namespace phalanx
