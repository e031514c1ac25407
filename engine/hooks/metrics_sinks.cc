// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/metrics_sinks.h"

#include <utility>

#include "engine/hooks/restarts.h"
#include "framework/base/console.h"
#include "framework/observe/metrics/exposition.h"
#include "framework/observe/metrics/live_file.h"
#include "framework/observe/metrics/metrics_log.h"

namespace phalanx {
namespace {

constexpr const char* kGoesOn = "the run continues, and tries again";

}  // namespace

MetricsSinks::MetricsSinks(const ExperimentConfig& config, const Run& run) {
  if (run.rank != 0) return;
  const auto& watch = config.watch;
  add_file(std::make_unique<MetricsLog>(run.folder.metrics()));
  if (watch.tensorboard) {
    auto board = std::make_unique<TensorBoard>(run.folder.tensorboard());
    board_ = board.get();
    add_file(std::move(board));
  }
  const Exposition facts{.run = config.name,
                         .ranks = run.ranks,
                         .planned_steps = run.total.steps,
                         .restarts = restarts_of_job().count,
                         .failures = run.failures};
  add_file(std::make_unique<LiveFile>(run.folder.live(), facts));
  if (watch.prometheus.port > 0) {
    const auto& [port, host] = watch.prometheus;
    prometheus_ = std::make_unique<PrometheusEndpoint>(
        PrometheusEndpoint::Address{.host = host, .port = static_cast<int>(port)}, facts);
  }
  if (watch.progress) {
    progress_ = std::make_unique<Progress>(standard_output(), run.terminal, run.total, run.terminal && wants_colors());
  }
}

void MetricsSinks::add(const MetricsRecord& record) {
  if (prometheus_) prometheus_->add(record);
  for (auto& [sink, effort] : files_) {
    effort.attempt([&] { sink->add(record); }, kGoesOn);
  }
}

bool MetricsSinks::flush(Seconds limit) {
  bool complete = true;
  for (auto& [sink, effort] : files_) {
    bool done = false;
    effort.attempt(
        [&] {
          sink->flush(limit);
          done = true;
        },
        kGoesOn);
    complete &= done;
  }
  return complete;
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
