// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "engine/precision/arithmetic.h"
#include "engine/step/random_step.h"
#include "engine/task/task.h"
#include "framework/base/batch.h"
#include "framework/parallel/random_rows.h"

namespace phalanx {

/// What steps do before and behind the model, which they run with `arithmetic`.
class Computation {
 public:
  /// `class_parts`: as models give their first output; null: whole. `seed`: of random numbers by row; null: models draw
  /// from LibTorch's generator. The task must outlive it.
  Computation(const Task& task, Arithmetic arithmetic, ClassPartsPtr class_parts, StepSeed seed)
      : task_(task), arithmetic_(std::move(arithmetic)), class_parts_(std::move(class_parts)), seed_(std::move(seed)) {}

  /// The inputs as models get them.
  Tensors inputs(const Batch& batch) const;

  /// An image, or what a layer has made of it, in the layout that models get.
  at::Tensor laid_out(at::Tensor input) const;

  /// Scopes in which the model is to run.
  std::optional<RandomKey> key(const Batch& batch) const;
  c10::ScalarType autocast() const { return doubles() ? at::kFloat : arithmetic_.dtype; }

  /// What losses and meters see of the model's outputs.
  Tensors predictions(Tensors outputs) const;

  /// Over what counts in the batch, whose Batch::weight() is `weight`. Padding lies at the end. A batch in which
  /// nothing counts has loss 0, with gradients of 0 rather than none.
  at::Tensor mean_loss(const Tensors& predictions, Batch batch, double weight) const;

  /// What a mean loss is multiplied with before backward, for gradients that are `factor` times the batch's part of
  /// those of the global batch's mean loss.
  double scale(const Batch& batch, double weight, double factor) const;

  /// Returns the same factor for a mean over the batch's samples, in which all samples have the same weight.
  double scale_of_samples(const Batch& batch, double factor) const;

 private:
  at::Tensor mean_loss_of_valid(Tensors predictions, const Batch& batch) const;
  double scaled(double share) const { return arithmetic_.loss_scale ? share * arithmetic_.loss_scale() : share; }
  bool doubles() const { return arithmetic_.dtype == c10::ScalarType::Double; }

  const Task& task_;
  Arithmetic arithmetic_;
  ClassPartsPtr class_parts_;
  StepSeed seed_;
};

}  // namespace phalanx
