// SPDX-License-Identifier: Apache-2.0
#include "engine/config/meter_check.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Returns a batch of one sample of zeros.
Tensors zeros_of(const std::vector<TensorSpec>& specs) {
  Tensors all;
  for (const auto& spec : specs) {
    std::vector<std::int64_t> shape = spec.shape;
    shape.insert(shape.begin(), 1);
    all.push_back(at::zeros(shape, spec.dtype));
  }
  return all;
}

void find_problems(const std::string& key, const std::vector<MeterConfig>& meters, const Batch& batch,
                   const Step::Result& result, std::vector<ConfigProblem>& problems) {
  for (std::size_t i = 0; i < meters.size(); ++i) {
    try {
      meters[i].meter.make()->add(batch, result);
    } catch (const ConfigError& error) {
      problems.push_back(
          {.origin = "config", .key = key + "[" + std::to_string(i) + "]", .message = error.what(), .suggestion = {}});
    }
  }
}

}  // namespace

void check_meters(const Task& task, const SampleSpec& sample, const ExperimentConfig& config) {
  Batch batch{.inputs = zeros_of(sample.inputs), .targets = zeros_of(sample.targets), .valid = 1, .global_rows = 1};
  task.prepare(batch);
  const Step::Result result{
      .outputs = task.predictions(zeros_of(task.model().outputs)), .loss = at::zeros({}), .weight = batch.weight()};
  std::vector<ConfigProblem> problems;
  find_problems("watch.meters", config.watch.meters, batch, result, problems);
  find_problems("evaluate.meters", config.evaluate.meters, batch, result, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace phalanx
