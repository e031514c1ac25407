// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/config/experiment_config.h"
#include "engine/run_folder.h"
#include "framework/observe/best_effort.h"
#include "framework/observe/metrics/background_sink.h"
#include "framework/observe/metrics/metrics_record.h"
#include "framework/observe/metrics/progress.h"
#include "framework/observe/metrics/prometheus.h"
#include "framework/observe/metrics/tensorboard.h"

namespace phalanx {

/// The destinations of a run's metrics, as section `watch` asks for them: metrics.jsonl and live.prom, TensorBoard,
/// Prometheus, and the progress on the console. There are none on ranks other than 0.
class MetricsSinks {
 public:
  /// The run, as seen by this rank.
  struct Run {
    const RunFolder& folder;
    int rank = 0, ranks = 1;
    bool terminal = false;  // true if standard output is a terminal
    Progress::Total total{};
    FailureCost failures{};  // before the first record
  };

  /// Throws DataError if a file cannot be opened, and ConfigError if metrics cannot be served.
  MetricsSinks(const ExperimentConfig& config, const Run& run);

  /// Writes a record to everything but the console, to files behind the caller's back. If this fails, the run
  /// continues.
  void add(const MetricsRecord& record);

  /// Waits until files have all records, at most for `limit`. If they have not, the run continues. Returns true if they
  /// have.
  bool flush(Seconds limit);

  bool shows_progress() const { return progress_ != nullptr; }

  /// Show the state of training, and a result, unless progress is not shown.
  void show(const MetricsRecord& train);
  void show_result(const MetricsRecord& result);
  void end_progress() { progress_.reset(); }

  /// Tells TensorBoard that events after this step are obsolete. Must be called before the first record.
  void resume_after(std::int64_t step);

 private:
  struct File {
    std::unique_ptr<BackgroundSink> sink;
    BestEffort effort{};
  };

  void add_file(std::unique_ptr<MetricsSink> file) {
    files_.push_back({std::make_unique<BackgroundSink>(std::move(file))});
  }

  std::vector<File> files_;
  std::unique_ptr<PrometheusEndpoint> prometheus_;
  TensorBoard* board_ = nullptr;  // owned by files_; null: none
  std::unique_ptr<Progress> progress_;
};

}  // namespace phalanx
