// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/task/task.h"
#include "framework/base/batch.h"
#include "framework/base/sample_spec.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Which positions of each sequence are this rank's, where mesh.context divides them: ranks along that axis get the
/// same samples, and each keeps its own positions of their inputs and targets (framework/parallel/sequence_part.h).
class SequenceShare {
 public:
  /// `along`: the ranks of the context axis. With more than one of them throws ConfigError unless samples are
  /// sequences of a length that they can divide, with one target at each position.
  SequenceShare(const Task& task, const SampleSpec& samples, CommunicatorPtr along);

  /// Cuts a batch that its task has prepared down to the positions of this rank. A row then counts once for each target
  /// of this rank that is not ignored, so that the loss of a global batch is the mean over all targets of all ranks.
  void cut(Batch& batch) const;

 private:
  CommunicatorPtr along_;
};

}  // namespace phalanx
