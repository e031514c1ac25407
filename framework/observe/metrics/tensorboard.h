// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/observe/metrics/event_file.h"
#include "framework/observe/metrics/metrics_record.h"

namespace phalanx {

/// Writes metrics for TensorBoard, with tags train/loss, test/accuracy, train/learning_rate,
/// train/samples_per_second, step_ms/forward, ...
class TensorBoard final : public MetricsSink {
 public:
  /// Writes to a separate file in `folder`, which is created with the first record.
  explicit TensorBoard(std::string folder) : folder_(std::move(folder)) {}

  /// Says that the run resumes after `step`, so that later steps in older files become invalid. Must be called before
  /// the first record. Without this call, all steps in older files become invalid.
  void resume_after(std::int64_t step) { after_ = step; }

  void add(const MetricsRecord& record) override;  // throws DataError
  void retry() override {
    if (file_) file_->retry();
  }

 private:
  std::string folder_;
  std::int64_t after_ = 0;
  std::optional<EventFile> file_;
};

}  // namespace phalanx
