// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "engine/build/sequence_share.h"
#include "engine/config/experiment_config.h"
#include "engine/task/task.h"
#include "framework/base/batch.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// The batches of a rank whose peers do not exist. They are as in a run, but the weight of the global batch follows
/// from the rank's own share.
class PlanBatches {
 public:
  /// `task` must outlive the object. Throws ConfigError like SequenceShare and make_split_loader().
  PlanBatches(const ExperimentConfig& config, const std::shared_ptr<const Dataset>& split, const Task& task,
              const Mesh& mesh);

  /// Loads the next batch, of the next epoch if necessary. Throws ConfigError if the split has no batch.
  void load();

  const Batch& batch() const { return batch_; }

 private:
  const Task& task_;
  SequenceShare sequence_;
  std::unique_ptr<Loader> loader_;
  double ranks_;  // that divide a batch
  Batch batch_;
  std::int64_t epoch_ = 0;
};

}  // namespace phalanx
