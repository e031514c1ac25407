// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/metrics_sinks.h"

#include <utility>

#include "framework/base/console.h"
#include "framework/observe/metrics/exposition.h"
#include "framework/observe/metrics/live_file.h"
#include "framework/observe/metrics/metrics_log.h"
#include "framework/observe/metrics/prometheus.h"

namespace phalanx {

MetricsSinks::MetricsSinks(const ExperimentConfig& config, const Run& run) {
  if (run.rank != 0) return;
  const auto& watch = config.watch;
  sinks_.push_back({std::make_unique<MetricsLog>(run.folder.metrics())});
  if (watch.tensorboard) {
    auto board = std::make_unique<TensorBoard>(run.folder.tensorboard());
    board_ = board.get();
    sinks_.push_back({std::move(board)});
  }
  const Exposition facts{.run = config.name, .ranks = run.ranks, .planned_steps = run.total.steps};
  sinks_.push_back({std::make_unique<LiveFile>(run.folder.live(), facts)});
  if (watch.prometheus.port > 0) {
    const auto& [port, host] = watch.prometheus;
    sinks_.push_back({std::make_unique<PrometheusEndpoint>(
        PrometheusEndpoint::Address{.host = host, .port = static_cast<int>(port)}, facts)});
  }
  if (watch.progress) {
    progress_ = std::make_unique<Progress>(standard_output(), run.terminal, run.total, run.terminal && wants_colors());
  }
}

void MetricsSinks::add(const MetricsRecord& record) {
  for (auto& [sink, effort] : sinks_) {
    effort.attempt([&] { sink->add(record); }, "the run continues, and tries again at the next measurement");
  }
}

void MetricsSinks::show(const MetricsRecord& train) {
  if (progress_) progress_->update(train);
}

void MetricsSinks::show_result(const MetricsRecord& result) {
  if (progress_) progress_->result(result);
}

void MetricsSinks::resume_after(std::int64_t step) {
  if (board_ != nullptr) board_->resume_after(step);
}

}  // namespace phalanx
