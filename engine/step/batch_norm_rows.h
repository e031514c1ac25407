// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "engine/step/step_listener.h"
#include "framework/parallel/sync_batch_norm.h"

namespace phalanx {

/// Tells the model's synchronized batch norm layers, which share `statistics`, which rows of each batch are padding.
class BatchNormRows final : public StepListener {
 public:
  explicit BatchNormRows(std::shared_ptr<BatchStatistics> statistics) : statistics_(std::move(statistics)) {}

  void before_step(const Batch& batch) override { statistics_->valid = batch.valid; }

 private:
  std::shared_ptr<BatchStatistics> statistics_;
};

}  // namespace phalanx
