// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "engine/precision/arithmetic.h"
#include "engine/step/computation.h"
#include "engine/step/current_step.h"
#include "engine/task/task.h"
#include "framework/parallel/step.h"
#include "models/auxiliary_loss.h"
#include "models/model.h"

namespace phalanx {

/// Computes forward and backward of the whole batch at once.
class PlainStep final : public Step {
 public:
  /// Gradients are `factor` times this rank's part of the gradients of the global batch's mean loss. If the strategy
  /// takes the mean over ranks, `factor` must be their number. `vocabulary_shard` describes the model's first output
  /// (TensorParallel::keep_logits_sharded()). `current` has the seed of random numbers by row; if it is null, models
  /// use LibTorch's generator. The model and the task must outlive the step.
  PlainStep(Model& model, const Task& task, double factor, Arithmetic arithmetic = {},
            VocabularyShardPtr vocabulary_shard = nullptr, std::shared_ptr<const CurrentStep> current = nullptr)
      : model_(model),
        auxiliary_loss_(as<AuxiliaryLoss>(model)),
        computation_(task, std::move(arithmetic), vocabulary_shard, std::move(current)),
        factor_(factor),
        vocabulary_shard_(std::move(vocabulary_shard)) {}

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

 private:
  Tensors forward(const Batch& batch);

  Model& model_;
  AuxiliaryLoss* auxiliary_loss_;  // null: the model adds nothing to the loss
  Computation computation_;
  double factor_;
  VocabularyShardPtr vocabulary_shard_;  // null if outputs are whole
};

}  // namespace phalanx
