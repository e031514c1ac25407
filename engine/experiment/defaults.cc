#include "engine/experiment/experiment.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// "highest" or "lowest" for "auto", which knows of the task's own metric alone.
void complete_direction(std::string& direction, const std::string& metric, const Goal& goal, const std::string& key) {
  if (direction != "auto" || metric.empty()) return;
  if (metric != goal.metric) {
    throw ConfigError(key + ": auto knows what is best of \"" + goal.metric + "\" alone, the task's own metric; of \"" +
                      metric + "\" say highest or lowest");
  }
  direction = goal.highest ? "highest" : "lowest";
}

}  // namespace

ExperimentConfig with_defaults_of(const Task& task, const ExperimentConfig& config) {
  ExperimentConfig complete = config;
  if (complete.evaluate.meters.empty()) complete.evaluate.meters = task.meters();
  if (complete.watch.meters.empty()) complete.watch.meters = task.meters();
  const Goal goal = task.goal();
  auto& checkpoint = complete.checkpoint;
  if (checkpoint.best_by.empty()) checkpoint.best_by = goal.metric;
  if (checkpoint.keep_best > 0) {
    complete_direction(checkpoint.best_is, checkpoint.best_by, goal, "checkpoint.best_is");
  }
  auto& early_stop = complete.train.early_stop;
  complete_direction(early_stop.best, early_stop.metric, goal, "train.early_stop.best");
  return complete;
}

}  // namespace phalanx
