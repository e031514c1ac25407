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
  struct Options {
    /// Gradients are `factor` times this rank's part of the gradients of the global batch's mean loss. If the strategy
    /// takes the mean over ranks, it must be their number.
    double factor = 1;

    Arithmetic arithmetic{};
    VocabularyShardPtr vocabulary_shard{};         // of the model's first output (keep_logits_sharded()); null: whole
    std::shared_ptr<const CurrentStep> current{};  // seed of random numbers by row; null: LibTorch's generator
  };

  /// The model and the task must outlive the step.
  PlainStep(Model& model, const Task& task, Options options)
      : model_(model),
        auxiliary_loss_(as<AuxiliaryLoss>(model)),
        computation_(task, std::move(options.arithmetic), options.vocabulary_shard, std::move(options.current)),
        factor_(options.factor),
        vocabulary_shard_(std::move(options.vocabulary_shard)) {}

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
