// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <utility>

#include "engine/precision/arithmetic.h"
#include "engine/step/current_step.h"
#include "engine/task/task.h"
#include "framework/base/batch.h"
#include "framework/parallel/random_rows.h"

namespace phalanx {

/// The parts of a step before and after the model, which runs with `arithmetic`.
class Computation {
 public:
  /// `vocabulary_shard` describes the first output of the model; null if it is whole. `current` has the seed of random
  /// numbers by row; if it is null, models use LibTorch's generator. The task must outlive this object.
  Computation(const Task& task, Arithmetic arithmetic, VocabularyShardPtr vocabulary_shard,
              std::shared_ptr<const CurrentStep> current)
      : task_(task),
        arithmetic_(std::move(arithmetic)),
        vocabulary_shard_(std::move(vocabulary_shard)),
        current_(std::move(current)) {}

  /// Returns the inputs in the form that models get.
  Tensors inputs(const Batch& batch) const;

  /// Returns an image, or a layer's output for one, in the memory layout that models get.
  at::Tensor laid_out(at::Tensor input) const;

  /// Parameters of the scopes in which the model must run.
  std::optional<RandomKey> key(const Batch& batch) const;
  c10::ScalarType autocast() const { return doubles() ? at::kFloat : arithmetic_.dtype; }

  /// Turns the model's outputs into the predictions that losses and meters see.
  Tensors predictions(Tensors outputs) const;

  /// Returns the mean loss over the targets that count in the batch. `weight` is Batch::weight(). Padding must be at
  /// the end. If nothing counts, the loss is 0 and the gradients are 0 instead of undefined.
  at::Tensor mean_loss(const Tensors& predictions, Batch batch, double weight) const;

  /// Returns the factor for a mean loss before backward, without the loss scale. Gradients are then `factor` times the
  /// batch's part of the gradients of the global batch's mean loss.
  double share(const Batch& batch, double weight, double factor) const;

  /// Returns the same factor for a mean over the batch's samples, with equal weights.
  double share_of_samples(const Batch& batch, double factor) const;

  /// Returns `loss` times `share` times the loss scale. Does not wait for the device.
  at::Tensor scaled(const at::Tensor& loss, double share) const;

 private:
  at::Tensor mean_loss_of_valid(Tensors predictions, const Batch& batch) const;
  bool doubles() const { return arithmetic_.dtype == c10::ScalarType::Double; }

  const Task& task_;
  Arithmetic arithmetic_;
  VocabularyShardPtr vocabulary_shard_;
  std::shared_ptr<const CurrentStep> current_;
};

}  // namespace phalanx
