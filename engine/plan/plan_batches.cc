// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/plan_batches.h"

#include "engine/build/split_loader.h"
#include "framework/base/error.h"

namespace phalanx {

PlanBatches::PlanBatches(const ExperimentConfig& config, const std::shared_ptr<const Dataset>& split, const Task& task,
                         const Mesh& mesh)
    : task_(task),
      sequence_(task, split->spec(), mesh.along(Axis::kContext)),
      loader_(make_split_loader(split, config.train.global_batch_size, config, SplitUse::kTraining, *mesh.samples())),
      ranks_(mesh.batch()->size()) {}

void PlanBatches::load() {
  if (!loader_->next(batch_)) {
    loader_->start_epoch(++epoch_);
    if (!loader_->next(batch_)) throw ConfigError("train.global_batch_size: there is no batch to plan a step with");
  }
  task_.prepare(batch_);
  sequence_.cut(batch_);
  if (batch_.row_weights.defined()) batch_.global_weight = batch_.weight() * ranks_;
}

}  // namespace phalanx
