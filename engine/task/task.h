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
#include "framework/parallel/class_parts.h"

namespace phalanx {

/// The reading by which one version of a model is better than another.
struct Goal {
  std::string metric;
  bool highest = true;
};

/// What a model is trained for: which tensors of a sample it gets, what it is to make of them, how far off it is, and
/// what is measured. The engine, the strategies and the models know no more of a batch than its task tells them.
///
/// Tensors may be on any device; no function reads a value from one that is not on the CPU.
class Task {
 public:
  virtual ~Task() = default;

  /// What models of this task take and give.
  virtual const ModelSpec& model() const = 0;

  /// The targets of a batch, once it is prepared: mostly those of the samples.
  virtual std::vector<TensorSpec> targets(const SampleSpec& sample) const { return sample.targets; }

  /// What losses and meters see of a model's outputs: class scores in the last dimension. Each [n, ...].
  virtual Tensors predictions(Tensors outputs) const { return outputs; }

  /// The loss function to minimise, as the mean over what counts in `batch`: sum of losses / Batch::weight(). Of
  /// predictions of valid rows alone, of which at least one counts. -> [] of their dtype, differentiable.
  virtual at::Tensor mean_loss(const Tensors& predictions, const Batch& batch) const = 0;

  /// The same where ranks divide the scores that the first of the predictions has: of all of them, on each of these
  /// ranks. Gathers them unless a task can do without. Collective.
  virtual at::Tensor mean_loss_of_parts(Tensors predictions, const ClassParts& parts, const Batch& batch) const {
    predictions.at(0) = gather_scores(predictions.at(0), parts);
    return mean_loss(predictions, batch);
  }

  /// Completes a batch as the dataset gave it, on the CPU: targets that follow from the inputs, and row_weights where
  /// samples do not count alike, such as the number of targets that are not ignored. Not global_weight.
  /// Weights are whole numbers, so that sums of them are exact on any number of ranks.
  virtual void prepare(Batch& /*batch*/) const {}

  /// Throws ConfigError for values that the task cannot be computed with. Each rank asks this of the first
  /// batch that it has prepared, and of no other.
  virtual void check_values(const Batch& /*batch*/) const {}

  /// What is measured unless the config says otherwise. The goal's metric is among their readings.
  virtual std::vector<MeterConfig> meters() const = 0;
  virtual Goal goal() const = 0;

  /// Training in turns, as of a generator and its discriminator: update k (from 0) changes the parameters of turn k mod
  /// turns().size() alone, by gradients of the mean_loss() of that turn. Empty: every update changes all parameters.
  struct Turn {
    std::string name;
    std::string parameters;  // regular expression (ECMAScript), found anywhere in their names
  };
  virtual std::vector<Turn> turns() const { return {}; }

  /// Whose turn it is: before each forward, and 0 in tests.
  virtual void take_turn(std::size_t /*turn*/) {}
};

/// Tasks by name; "auto" is the one that the samples name. The loss is the config's; null: the task's own default.
/// Factories throw ConfigError for samples that do not suit the task.
using Tasks = Registry<std::unique_ptr<Task>(const SampleSpec&, std::shared_ptr<const Loss>)>;

}  // namespace phalanx
