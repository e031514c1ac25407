// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/measurement_sinks.h"

#include <utility>

#include "engine/watch/metrics_log.h"
#include "engine/watch/prometheus.h"
#include "framework/base/console.h"

namespace phalanx {

MetricsSinks::MetricsSinks(const ExperimentConfig& config, const ExperimentContext& context, Progress::Total total) {
  if (context.world->rank() != 0) return;
  const auto& watch = config.watch;
  sinks_.push_back({std::make_unique<MetricsLog>(context.folder.metrics())});
  if (watch.tensorboard) {
    auto board = std::make_unique<TensorBoard>(context.folder.tensorboard());
    board_ = board.get();
    sinks_.push_back({std::move(board)});
  }
  if (watch.prometheus.port > 0) {
    sinks_.push_back({std::make_unique<PrometheusEndpoint>(watch.prometheus, config.name, context.world->size())});
  }
  if (watch.progress) {
    progress_ =
        std::make_unique<Progress>(standard_output(), context.terminal, total, context.terminal && wants_colors());
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
