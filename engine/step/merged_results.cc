// SPDX-License-Identifier: Apache-2.0
#include "engine/step/merged_results.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <numeric>
#include <utility>

namespace phalanx {

// The product of a loss and a weight is exact, since a loss is a float and a weight an integer below 2^29. With
// train.precision: fp64 it is rounded.
void MergedResults::add(const Step::Result& result) {
  outputs_.resize(result.outputs.size());
  vocabulary_shard_ = result.vocabulary_shard;
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].push_back(result.outputs[i]);
  dtype_ = result.loss.scalar_type();
  loss_sums_.push_back(result.loss.item<double>() * result.weight);
  weight_ += result.weight;
}

Step::Result MergedResults::whole() const {
  const double sum = std::accumulate(loss_sums_.begin(), loss_sums_.end(), 0.0);
  Tensors outputs;
  for (const auto& parts : outputs_) outputs.push_back(at::concat(parts));
  return {.outputs = std::move(outputs),
          .loss = at::scalar_tensor(weight_ > 0 ? sum / weight_ : 0, dtype_),
          .weight = weight_,
          .vocabulary_shard = vocabulary_shard_,
          .loss_sums = at::tensor(loss_sums_, at::kDouble)};
}

void report_step(const Step::Watch& watch, const Step::Result& result) {
  report_evaluation(watch, result);
  watch(Stage::kBackwardCriterion, result);
  watch(Stage::kBackward, result);
}

void report_evaluation(const Step::Watch& watch, const Step::Result& result) {
  watch(Stage::kForward, result);
  watch(Stage::kForwardCriterion, result);
}

}  // namespace phalanx
