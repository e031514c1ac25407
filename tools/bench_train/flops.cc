// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include "engine/task/task.h"
#include "engine/watch/operation_count.h"
#include "framework/base/config/config.h"
#include "models/model.h"
#include "tools/bench_train/data.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

std::optional<double> flops_of_step(const Workload& workload, const SampleSpec& sample, std::int64_t rows) {
  const auto task = Tasks::Choice(sample.task).make(sample, nullptr);
  if (!task->turns().empty()) return std::nullopt;
  const auto model = config::load_as<Models::Choice>("model", workload.model, workload.name).make(task->model());
  model->train();
  std::vector<std::int64_t> indices(static_cast<std::size_t>(rows));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  Batch batch;
  map_samples({.samples = rows, .sample = sample})->gather(indices, 0, batch);
  task->prepare(batch);
  return count_flops([&] { task->mean_loss(task->predictions(model->outputs(batch.inputs)), batch).backward(); });
}

}  // namespace phalanx::bench_train
