// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/watch/appended_file.h"
#include "engine/watch/measurement.h"

namespace phalanx {

/// metrics.jsonl: one JSON object per line, on disk as soon as it is added, so that a run can be followed and nothing
/// is lost with a crash.
class MetricsLog final : public MeasurementSink {
 public:
  explicit MetricsLog(const std::string& path) : file_(path) {}  // throws DataError
  void add(const Measurement& measurement) override;

 private:
  AppendedFile file_;
};

/// Cuts the file back to `bytes`, to where a checkpoint has seen it, and a line that was begun and not ended. A file
/// that is not there, or shorter, is left as it is. Open logs go on behind the cut. Throws DataError.
void cut_metrics(const std::string& path, std::int64_t bytes);

}  // namespace phalanx
