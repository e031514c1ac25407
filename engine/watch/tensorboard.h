#pragma once

#include <optional>
#include <string>

#include "engine/watch/event_file.h"
#include "engine/watch/measurement.h"

namespace phalanx {

/// Measurements for TensorBoard, with tags train/loss, test/accuracy, train/learning_rate, train/samples_per_second,
/// step_ms/forward, ...
class TensorBoard final : public MeasurementSink {
 public:
  /// Writes to a file of its own in `folder`, begun with the first measurement: going on with a run, what an older file
  /// has from there on no longer counts.
  explicit TensorBoard(std::string folder) : folder_(std::move(folder)) {}

  void add(const Measurement& measurement) override;  // throws DataError

 private:
  std::string folder_;
  std::optional<EventFile> file_;
};

}  // namespace phalanx
