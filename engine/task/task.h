// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/loss/loss.h"
#include "engine/meters/meter_set.h"
#include "framework/base/batch.h"
#include "framework/base/registry.h"
#include "framework/base/sample_spec.h"
#include "framework/parallel/sharded_logits.h"
#include "framework/partition/vocabulary_shard.h"

namespace phalanx {

/// The metric that decides which version of a model is better.
struct Goal {
  std::string metric;
  bool highest = true;
};

/// Defines what a model is trained for: the tensors of a sample that it gets, the outputs that it must produce, their
/// loss, and the metrics. The engine, the strategies and the models know nothing about a batch except through its task.
///
/// Tensors may be on any device. No function reads values from tensors that are not on the CPU.
class Task {
 public:
  virtual ~Task() = default;

  /// Returns the inputs and outputs that models for this task must have.
  virtual const ModelSpec& model() const = 0;

  /// Returns the targets of a prepared batch, which are usually the samples' targets.
  virtual std::vector<TensorSpec> targets(const SampleSpec& sample) const { return sample.targets; }

  /// Turns a model's outputs into the predictions for losses and meters, with class scores in the last dimension. Each
  /// is [n, ...].
  virtual Tensors predictions(Tensors outputs) const { return outputs; }

  /// Returns true if predictions on devices may have 16 bits, since the losses compute in float32 themselves.
  virtual bool takes_16_bits() const { return false; }

  /// Returns the loss to minimise, as the mean over everything that counts in `batch`: sum of losses / Batch::weight().
  /// Predictions are for valid rows only, at least one of which counts. The result is [] in their dtype, float32 for 16
  /// bits, and differentiable.
  virtual at::Tensor mean_loss(const Tensors& predictions, const Batch& batch) const = 0;

  /// Returns the same loss if ranks divide the class scores in the first prediction; all of these ranks get the loss
  /// over all scores. Gathers the scores unless the task can avoid it. Collective.
  virtual at::Tensor mean_loss_of_parts(Tensors predictions, const VocabularyShard& parts, const Batch& batch) const {
    predictions.at(0) = gather_logits(predictions.at(0), parts);
    return mean_loss(predictions, batch);
  }

  /// Completes a batch from the dataset, on the CPU: sets targets that follow from the inputs, and row_weights if
  /// samples have different weights, such as the number of targets that are not ignored. Does not set global_weight.
  /// Weights are whole numbers, so that sums of them are exact on any number of ranks.
  virtual void prepare(Batch& /*batch*/) const {}

  /// Throws ConfigError for values with which the task cannot be computed. Each rank calls this only for the first
  /// batch that it has prepared.
  virtual void check_values(const Batch& /*batch*/) const {}

  /// Returns the default meters, one of which measures the goal's metric.
  virtual std::vector<MeterConfig> meters() const = 0;
  virtual Goal goal() const = 0;

  /// For training in turns, as a generator and its discriminator do: update k (from 0) changes only the parameters of
  /// turn k mod turns().size(), using gradients of that turn's mean_loss(). If empty, every update changes all
  /// parameters.
  struct Turn {
    std::string name;
    std::string parameters;  // regular expression (ECMAScript) that matches anywhere in their names
  };
  virtual std::vector<Turn> turns() const { return {}; }

  /// Sets the current turn. Called before each forward, and with 0 in tests.
  virtual void take_turn(std::size_t /*turn*/) {}
};

/// Tasks by name; "auto" is the task that the samples name. The loss is the one in the config, or null for the task's
/// default. Factories throw ConfigError for samples that do not suit the task.
using Tasks = Registry<std::unique_ptr<Task>(const SampleSpec&, std::shared_ptr<const Loss>)>;

}  // namespace phalanx
