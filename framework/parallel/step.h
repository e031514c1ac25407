// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "framework/base/batch.h"
#include "framework/parallel/class_parts.h"

namespace phalanx {

/// What happens inside a step, for those who watch; in this order. Forward stages also happen in evaluation.
enum class Stage { kForward, kForwardCriterion, kBackwardCriterion, kBackward };

/// Forward and backward of one batch: plain, accumulated, pipelined, captured in a graph.
class Step {
 public:
  struct Result {
    Tensors outputs{};  // each [n, ...], detached: what the model gave, as its task's losses see it; after kForward
    at::Tensor
        loss{};  // [], detached: mean over what counts in the batch, 0 where nothing does; after kForwardCriterion
    double weight = 0;  // how much counts: Batch::weight()

    // outputs[0] has the scores of this rank's classes alone, in the last dimension; null: of all classes.
    ClassPartsPtr class_parts{};

    // All of outputs[0]. Where ranks divide it, it is gathered: all of them call this, in the same order.
    at::Tensor whole_output() const {
      return class_parts == nullptr ? outputs.at(0) : gather_scores(outputs.at(0), *class_parts);
    }

    // Another rank of a pipeline has all of it; the weight is 0 here.
    bool elsewhere() const { return outputs.empty() && !loss.defined(); }

    // Of a batch that was taken in parts: [parts] double, each part's loss times its weight, without rounding.
    at::Tensor loss_sums{};
  };
  /// Called after each stage with what is known by then.
  using Watch = std::function<void(Stage stage, const Result& result)>;

  virtual ~Step() = default;

  /// Adds the gradients of this rank's part of the global loss to the parameters' grad, scaled so that the mean over
  /// all ranks is the gradient of the mean loss over the global batch. Of a pipeline, one rank has the result.
  virtual Result run(const Batch& batch, const Watch& watch) = 0;

  /// Forward alone, without gradients and in evaluation mode.
  virtual Result evaluate(const Batch& batch, const Watch& watch) = 0;
};

}  // namespace phalanx
