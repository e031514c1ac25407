// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "framework/base/batch.h"
#include "framework/parallel/sharded_logits.h"
#include "framework/partition/vocabulary_shard.h"

namespace phalanx {

/// The stages of a step, in this order, for observers. Forward stages also happen in evaluation.
enum class Stage { kForward, kForwardCriterion, kBackwardCriterion, kBackward };

/// Runs forward and backward of one batch: plain, accumulated, pipelined, or captured in a graph.
class Step {
 public:
  struct Result {
    Tensors outputs{};  // each [n, ...], detached: the model's outputs as its task's losses see them; after kForward
    at::Tensor loss{};  // [], detached: mean over what counts, 0 if nothing does; after kForwardCriterion
    double weight = 0;  // the sum of the weights: Batch::weight()

    // If not null, outputs[0] has only the scores of this rank's classes, in the last dimension.
    VocabularyShardPtr vocabulary_shard{};

    // Returns all of outputs[0]. If ranks divide it, it is gathered: all of them must call this, in the same order.
    at::Tensor whole_output() const {
      return vocabulary_shard == nullptr ? outputs.at(0) : gather_logits(outputs.at(0), *vocabulary_shard);
    }

    // Returns true if another rank of a pipeline has the result; the weight is 0 here.
    bool elsewhere() const { return outputs.empty() && !loss.defined(); }

    // True if the step has also exchanged the gradients and updated the parameters, as a graph of the device does that
    // contains both: the caller must do neither. The parameters' grad is zero then.
    bool updated = false;

    // Set for a batch that was processed in parts: [parts] float64, each part's loss times its weight, without
    // rounding.
    at::Tensor loss_sums{};
  };
  /// Called after each stage with the results so far.
  using Watch = std::function<void(Stage stage, const Result& result)>;

  virtual ~Step() = default;

  /// Adds the gradients of this rank's part of the global loss to the parameters' grad, scaled so that the mean over
  /// all ranks is the gradient of the mean loss over the global batch. In a pipeline, one rank has the result.
  virtual Result run(const Batch& batch, const Watch& watch) = 0;

  /// Runs only forward, without gradients and in evaluation mode.
  virtual Result evaluate(const Batch& batch, const Watch& watch) = 0;
};

}  // namespace phalanx
