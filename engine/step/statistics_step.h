// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "framework/parallel/step.h"
#include "framework/parallel/sync_batch_norm.h"

namespace phalanx {

/// Tells the model's batch norm layers, which share `statistics`, which rows of each batch are padding.
class StatisticsStep final : public Step {
 public:
  /// `step` must outlive this object.
  StatisticsStep(Step& step, std::shared_ptr<BatchStatistics> statistics)
      : step_(step), statistics_(std::move(statistics)) {}

  Result run(const Batch& batch, const Watch& watch) override {
    statistics_->valid = batch.valid;
    return step_.run(batch, watch);
  }
  Result evaluate(const Batch& batch, const Watch& watch) override { return step_.evaluate(batch, watch); }

 private:
  Step& step_;
  std::shared_ptr<BatchStatistics> statistics_;
};

}  // namespace phalanx
