// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "framework/observe/metrics/exposition.h"
#include "framework/observe/metrics/metrics_record.h"

namespace phalanx {

/// Keeps the state of a run in a file, in Prometheus' text format, for programs that watch the run without a connection
/// to it: `phalanx top`, `phalanx dashboard`, and the node exporter's textfile collector. The file is replaced in one
/// step, at most once in kInterval, and removed at the end of the run.
///
/// If the file cannot be written, it stays as it was: metrics.jsonl in the same folder, which must not lose anything,
/// reports why.
class LiveFile final : public MetricsSink {
 public:
  /// `run` has the facts that do not change.
  LiveFile(std::string path, Exposition run);
  ~LiveFile() override;
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  void add(const MetricsRecord& record) override;

  static constexpr std::chrono::milliseconds kInterval{1000};

 private:
  void remove() const;

  std::string path_;
  Exposition exposition_;
  std::chrono::steady_clock::time_point next_;  // the file is not written earlier
};

}  // namespace phalanx
