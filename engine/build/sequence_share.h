// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/task/task.h"
#include "framework/base/batch.h"
#include "framework/base/sample_spec.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The positions of each sequence that this rank computes if mesh.context divides them. Ranks along that axis get the
/// same samples, and each keeps only its positions of their inputs and targets (framework/partition/sequence_shard.h).
class SequenceShare {
 public:
  /// `along`: the ranks of the context axis. If there is more than one, throws ConfigError unless samples are sequences
  /// with one target at each position and of a length that these ranks can divide.
  SequenceShare(const Task& task, const SampleSpec& samples, CommunicatorPtr along);

  /// Reduces a batch, which the task has prepared, to the positions of this rank. The weight of a row becomes its
  /// number of targets on this rank that are not ignored, so that the loss of a global batch is the mean over all
  /// targets of all ranks.
  void cut(Batch& batch) const;

 private:
  CommunicatorPtr along_;
};

}  // namespace phalanx
