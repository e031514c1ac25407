// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/watch/event_file.h"
#include "engine/watch/measurement.h"

namespace phalanx {

/// Measurements for TensorBoard, with tags train/loss, test/accuracy, train/learning_rate, train/samples_per_second,
/// step_ms/forward, ...
class TensorBoard final : public MeasurementSink {
 public:
  /// Writes to a file of its own in `folder`, begun with the first measurement.
  explicit TensorBoard(std::string folder) : folder_(std::move(folder)) {}

  /// Before the first measurement: the run goes on after `step`, and what older files have of later steps no longer
  /// counts. Without it, nothing of theirs does.
  void go_on_after(std::int64_t step) { after_ = step; }

  void add(const Measurement& measurement) override;  // throws DataError

 private:
  std::string folder_;
  std::int64_t after_ = 0;
  std::optional<EventFile> file_;
};

}  // namespace phalanx
