// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "engine/precision/arithmetic.h"
#include "engine/step/computation.h"
#include "engine/step/random_step.h"
#include "engine/task/task.h"
#include "framework/parallel/step.h"
#include "models/model.h"

namespace phalanx {

/// Computes forward and backward of the whole batch at once.
class PlainStep final : public Step {
 public:
  /// Gradients are `factor` times this rank's part of the gradients of the global batch's mean loss. If the strategy
  /// takes the mean over ranks, `factor` must be their number. `class_parts` describes the model's first output
  /// (Model::leave_scores_divided()). `seed` is for random numbers by row; if it is null, models use LibTorch's
  /// generator. The model and the task must outlive the step.
  PlainStep(Model& model, const Task& task, double factor, Arithmetic arithmetic = {},
            ClassPartsPtr class_parts = nullptr, StepSeed seed = nullptr)
      : model_(model),
        computation_(task, std::move(arithmetic), class_parts, std::move(seed)),
        factor_(factor),
        class_parts_(std::move(class_parts)) {}

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

 private:
  Tensors forward(const Batch& batch);

  Model& model_;
  Computation computation_;
  double factor_;
  ClassPartsPtr class_parts_;  // null if outputs are whole
};

}  // namespace phalanx
