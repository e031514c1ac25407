// SPDX-License-Identifier: Apache-2.0
#include "engine/config/defaults.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::int64_t kMaxEvaluationBatch = 256;  // unless the config asks for more

// Replaces "auto" by "highest" or "lowest" if `metric` is the task's own metric, the only one whose direction a task
// knows.
void complete_direction(std::string& direction, const std::string& metric, const Goal& goal) {
  if (direction == "auto" && metric == goal.metric) direction = goal.highest ? "highest" : "lowest";
}

void refuse_auto(const std::string& direction, const std::string& metric, const std::string& key) {
  if (direction != "auto") return;
  throw ConfigError(key + ": auto knows only for the task's own metric which value is best; for \"" + metric +
                    "\" set highest or lowest");
}

}  // namespace

ExperimentConfig with_defaults_of(const Task& task, const ExperimentConfig& config) {
  ExperimentConfig complete = config;
  if (complete.evaluate.meters.empty()) complete.evaluate.meters = task.meters();
  if (complete.evaluate.global_batch_size == 0) {
    complete.evaluate.global_batch_size = std::min(complete.train.global_batch_size, kMaxEvaluationBatch);
  }
  if (complete.watch.meters.empty()) complete.watch.meters = task.meters();
  const Goal goal = task.goal();
  auto& checkpoint = complete.checkpoint;
  if (checkpoint.best_by.empty()) checkpoint.best_by = goal.metric;
  complete_direction(checkpoint.best_is, checkpoint.best_by, goal);
  auto& early_stop = complete.train.early_stop;
  complete_direction(early_stop.best, early_stop.metric, goal);
  for (auto& reach : complete.expect.reach) {
    complete_direction(reach.best, reach.metric, goal);
    if (reach.best == "auto" && reach.metric == "loss") reach.best = "lowest";
  }
  return complete;
}

void check_directions(const ExperimentConfig& config) {
  const auto& checkpoint = config.checkpoint;
  if (checkpoint.keep_best > 0) refuse_auto(checkpoint.best_is, checkpoint.best_by, "checkpoint.best_is");
  const auto& early_stop = config.train.early_stop;
  if (!early_stop.metric.empty()) refuse_auto(early_stop.best, early_stop.metric, "train.early_stop.best");
  for (std::size_t i = 0; i < config.expect.reach.size(); ++i) {
    const ReachConfig& reach = config.expect.reach[i];
    refuse_auto(reach.best, reach.metric, "expect.reach[" + std::to_string(i) + "].best");
  }
}

}  // namespace phalanx
