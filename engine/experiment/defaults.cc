#include <ATen/ops/zeros.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/experiment/experiment.h"
#include "framework/base/batch.h"
#include "framework/base/error.h"
#include "framework/parallel/step.h"

namespace phalanx {
namespace {

// "highest" or "lowest" for "auto", which knows of the task's own metric alone.
void complete_direction(std::string& direction, const std::string& metric, const Goal& goal) {
  if (direction == "auto" && metric == goal.metric) direction = goal.highest ? "highest" : "lowest";
}

void refuse_auto(const std::string& direction, const std::string& metric, const std::string& key) {
  if (direction != "auto") return;
  throw ConfigError(key + ": auto knows what is best of the task's own metric alone; of \"" + metric +
                    "\" say highest or lowest");
}

Tensors zeros_of(const std::vector<TensorSpec>& specs) {
  Tensors tensors;
  for (const auto& spec : specs) {
    auto shape = spec.shape;
    shape.insert(shape.begin(), 1);
    tensors.push_back(at::zeros(shape, spec.dtype));
  }
  return tensors;
}

}  // namespace

void check_meters(const ExperimentConfig& config, const SampleSpec& sample, const Task& task) {
  Batch batch{.inputs = zeros_of(sample.inputs), .targets = zeros_of(sample.targets), .valid = 1, .global_rows = 1};
  task.prepare(batch);
  batch.global_weight = batch.weight();
  const Step::Result result{
      .outputs = task.predictions(zeros_of(task.model().outputs)), .loss = at::zeros({}), .weight = batch.weight()};
  std::vector<ConfigProblem> problems;
  for (const auto& [key, meters] :
       {std::pair("evaluate", &config.evaluate.meters), std::pair("watch", &config.watch.meters)}) {
    for (std::size_t i = 0; i < meters->size(); ++i) {
      try {
        (*meters)[i].meter.make()->add(batch, result);
      } catch (const ConfigError& error) {
        const std::string path = std::string(key) + ".meters[" + std::to_string(i) + "]";
        problems.push_back({.origin = "config", .key = path, .message = error.what(), .suggestion = {}});
      }
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

ExperimentConfig with_defaults_of(const Task& task, const ExperimentConfig& config) {
  ExperimentConfig complete = config;
  if (complete.evaluate.meters.empty()) complete.evaluate.meters = task.meters();
  if (complete.watch.meters.empty()) complete.watch.meters = task.meters();
  const Goal goal = task.goal();
  auto& checkpoint = complete.checkpoint;
  if (checkpoint.best_by.empty()) checkpoint.best_by = goal.metric;
  complete_direction(checkpoint.best_is, checkpoint.best_by, goal);
  auto& early_stop = complete.train.early_stop;
  complete_direction(early_stop.best, early_stop.metric, goal);
  return complete;
}

void check_directions(const ExperimentConfig& config) {
  const auto& checkpoint = config.checkpoint;
  if (checkpoint.keep_best > 0) refuse_auto(checkpoint.best_is, checkpoint.best_by, "checkpoint.best_is");
  const auto& early_stop = config.train.early_stop;
  if (!early_stop.metric.empty()) refuse_auto(early_stop.best, early_stop.metric, "train.early_stop.best");
}

}  // namespace phalanx
