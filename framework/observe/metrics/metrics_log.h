// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/observe/metrics/appended_file.h"
#include "framework/observe/metrics/metrics_record.h"

namespace phalanx {

/// Writes metrics.jsonl: one JSON object per line. Lines are on disk as soon as they are added, so that readers can
/// follow a run and a crash loses none.
class MetricsLog final : public MetricsSink {
 public:
  explicit MetricsLog(const std::string& path) : file_(path) {}  // throws DataError
  void add(const MetricsRecord& record) override;
  void retry() override;

 private:
  AppendedFile file_;
};

/// Truncates the file to `bytes`, its length at a checkpoint, and removes an incomplete line at the end. Does not
/// change a missing or shorter file, except for an incomplete line. Open logs continue at the new end. Throws
/// DataError.
void cut_metrics(const std::string& path, std::int64_t bytes);

}  // namespace phalanx
