// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/report.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cinttypes>
#include <filesystem>
#include <string>
#include <utility>

#include "engine/hooks/failure_cost.h"
#include "framework/base/console.h"
#include "framework/base/device_memory.h"
#include "framework/base/text.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/observe/metrics/metrics_log.h"

namespace phalanx {
namespace {

constexpr Seconds kShortly{0.5};

}  // namespace

Report::Report(const Run& run)
    : run_(run),
      sinks_(run.config, {.folder = run.folder,
                          .rank = all_ranks().rank(),
                          .ranks = all_ranks().size(),
                          .terminal = run.terminal,
                          .total = {run.length.epochs, run.length.steps, run.length.batches},
                          .failures = failure_cost(run.recovery, run.started)}),
      meters_(run.config.watch, run.length),
      times_(run.clock, run.started),
      milestones_(run.config.expect) {}

void Report::report_start(const Start& start) {
  if (!writes_to_console() || !run_.config.watch.progress) return;
  std::vector<std::string> samples{format_text("%" PRId64 " training", start.training_samples)};
  if (start.validation_samples > 0) samples.push_back(format_text("%" PRId64 " validation", start.validation_samples));
  if (start.test_samples > 0) samples.push_back(format_text("%" PRId64 " test", start.test_samples));
  standard_output().write("Samples     " + join(samples, ", ") + "\nParameters  " + std::to_string(start.parameters) +
                          "\n" + (start.selected ? "Selected    strategy " + start.strategy + "\n" : "") +
                          (run_.device.is_cpu() ? "" : "Device      " + run_.device.str() + "\n") +
                          format_text("Ready       after %.1f s\n", times_.since_job_started()));
}

void Report::attach(Engine& engine) {
  engine.on(Event::kStart, HookPhase::kMeasure, [this](State&) { times_.start_training(); });
  engine.on(Event::kUpdate, HookPhase::kMeasure, [this](State& state) {
    count(state);
    if (state.step % run_.config.watch.every_steps == 0) read_meters(state);
  });
  engine.on(Event::kEndEpoch, HookPhase::kMeasure, [this](State& state) {
    if (times_.window_samples() > 0) read_meters(state);
    read_epoch(state);
  });
  engine.on(Event::kEnd, HookPhase::kMeasure, [this](State&) { times_.end_training(all_ranks()); });
}

void Report::count(const State& state) {
  times_.count_step(state.batch.global_rows);
  meters_.add(state);
  latest_.step = state.step;
  if (!sinks_.shows_progress()) return;
  latest_.epoch = state.epoch;
  latest_.planned_steps = run_.length.steps;
  latest_.seconds = times_.since_training_started();
  sinks_.show(latest_);
}

void Report::read_meters(const State& state) {
  const ParameterUpdate& update = *run_.replica.update;
  Metrics metrics = meters_.take(*readers());
  for (auto& metric : update.metrics()) metrics.push_back(std::move(metric));
  for (auto& metric : run_.gradient_norms.metrics()) metrics.push_back(std::move(metric));
  if (!run_.device.is_cpu()) metrics.emplace_back("device_memory_peak_gib", peak_of_ranks() * 0x1p-30);
  latest_ = {.step = state.step,
             .epoch = state.epoch,
             .split = "train",
             .metrics = std::move(metrics),
             .samples_per_second = times_.window_samples_per_second(),
             .seconds = times_.since_training_started(),
             .learning_rate = update.optimizer().learning_rate(),
             .times = across_ranks(times_.window_phases(), all_ranks()),
             .failures = failure_cost(run_.recovery, run_.started),
             .planned_steps = run_.length.steps};
  times_.begin_window();
  milestones_.add(latest_);
  sinks_.add(latest_);
  sinks_.show(latest_);
}

// Ranks that differ only along other axes than kResultAxes have the same results. Returns true on the first of them.
bool Report::has_own_results() const {
  for (const auto axis : {Axis::kData, Axis::kPipe, Axis::kTensor, Axis::kExpert, Axis::kContext}) {
    if (!kResultAxes.has(axis) && run_.replica.mesh().position(axis) != 0) return false;
  }
  return true;
}

// Returns the peak memory of the rank that used most.
double Report::peak_of_ranks() const {
  const at::Tensor bytes = at::full({1}, peak_bytes(run_.device), at::kLong);
  const MeasuredInputs measured;
  all_ranks().all_reduce(bytes, Reduction::kMax).wait();
  return static_cast<double>(bytes.item<std::int64_t>());
}

void Report::read_epoch(const State& state) {
  Metrics metrics = meters_.take_epoch(state, *readers());
  if (metrics.empty()) return;
  sinks_.show_result({.step = state.step,
                      .epoch = state.epoch,
                      .split = "train",
                      .metrics = std::move(metrics),
                      .seconds = times_.since_training_started()});
}

std::vector<CheckpointPart> Report::parts() {
  std::vector<CheckpointPart> parts{{.name = "report",
                                     .save = [this] { return save(); },
                                     .load = [this](const SavedRanks& saved) { load(saved.of(0)); },
                                     .every_rank = false},
                                    milestones_.part()};
  for (auto& part : meters_.parts(readers(), has_own_results())) parts.push_back(std::move(part));
  return parts;
}

void Report::end_progress() {
  sinks_.end_progress();
  sinks_.flush(Seconds(std::max(kShortly.count(), run_.config.checkpoint.retry)));
}

NamedTensors Report::save() {
  // The checkpoint names the length of metrics.jsonl. A slow disk delays a single checkpoint.
  written_ = sinks_.flush(written_ ? kShortly : Seconds(0));
  std::error_code none;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(run_.folder.metrics(), none));
  const auto progress = times_.progress();
  return {{"counts", at::tensor({bytes, progress.window_samples, progress.samples}, at::kLong)},
          {"step", at::full({1}, latest_.step, at::kLong)},
          {"seconds",
           at::tensor({progress.training_seconds, progress.window_seconds, progress.evaluation_seconds}, at::kDouble)}};
}

void Report::load(const NamedTensors& saved) {
  auto progress = times_.progress();
  for (const auto& [name, tensor] : saved) {
    if (name == "counts") {
      const auto* count = tensor.data_ptr<std::int64_t>();
      // A run that goes on without lost ranks continues the file.
      if (writes_to_console() && !run_.goes_on) cut_metrics(run_.folder.metrics(), count[0]);
      progress.window_samples = count[1];
      progress.samples = count[2];
    } else if (name == "step") {
      latest_.step = tensor.item<std::int64_t>();
      sinks_.resume_after(latest_.step);
    } else if (name == "seconds") {
      const auto* seconds = tensor.data_ptr<double>();
      progress.training_seconds = seconds[0];
      progress.window_seconds = seconds[1];
      progress.evaluation_seconds = seconds[2];
    }
  }
  times_.load(progress);
}

void Report::end_evaluation(const State& state, const Evaluated& evaluated, const Metrics& metrics) {
  const double seconds = times_.end_evaluation();
  const MetricsRecord evaluation{.step = state.step,
                                 .epoch = state.epoch,
                                 .split = evaluated.split,
                                 .metrics = metrics,
                                 .samples_per_second = static_cast<double>(evaluated.samples) / seconds,
                                 .seconds = times_.since_training_started(),
                                 .version = evaluated.version};
  milestones_.add(evaluation);
  if (!writes_to_console()) return;
  sinks_.add(evaluation);
  if (evaluated.shown) sinks_.show_result(evaluation);
}

}  // namespace phalanx
