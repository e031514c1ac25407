#pragma once

#include "engine/precision/arithmetic.h"
#include "engine/step/random_step.h"
#include "engine/task/task.h"
#include "framework/parallel/step.h"
#include "models/model.h"

namespace phalanx {

/// Forward and backward of the whole batch at once.
class PlainStep final : public Step {
 public:
  /// Gradients are `factor` times this rank's part of those of the global batch's mean loss: the number of ranks, of
  /// which a strategy takes the mean, makes them add up to these. `class_parts`: as the model gives its first output
  /// (Model::leave_scores_divided()). `seed`: of random numbers by row; null: models draw from LibTorch's generator.
  /// The model and the task must outlive the step.
  PlainStep(Model& model, const Task& task, double factor, Arithmetic arithmetic = {},
            ClassPartsPtr class_parts = nullptr, StepSeed seed = nullptr)
      : model_(model),
        task_(task),
        factor_(factor),
        arithmetic_(std::move(arithmetic)),
        class_parts_(std::move(class_parts)),
        seed_(std::move(seed)) {}

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

 private:
  Tensors forward(const Batch& batch);
  at::Tensor mean_loss(const Tensors& predictions, Batch batch, double weight) const;
  at::Tensor mean_loss_of_valid(Tensors predictions, const Batch& batch) const;
  bool doubles() const { return arithmetic_.dtype == c10::ScalarType::Double; }

  Model& model_;
  const Task& task_;
  double factor_;
  Arithmetic arithmetic_;
  ClassPartsPtr class_parts_;  // null: outputs are whole
  StepSeed seed_;
};

}  // namespace phalanx
