// SPDX-License-Identifier: Apache-2.0
#include "engine/step/plain_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "framework/parallel/autocast.h"
#include "framework/parallel/padding_rows.h"
#include "framework/parallel/random_rows.h"

namespace phalanx {
namespace {

Tensors detached(const Tensors& tensors) {
  Tensors all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach());
  return all;
}

// Continues backward from the gradients at the outputs, where the criterion's backward has ended, and from the model's
// own addition to the loss. Outputs that the loss did not use have no gradient.
void backward(const Tensors& outputs, const Tensors& boundary, const at::Tensor& auxiliary, double scale) {
  Tensors roots, gradients;
  if (auxiliary.defined() && auxiliary.requires_grad()) {
    roots.push_back(auxiliary);
    gradients.push_back(at::full_like(auxiliary, scale));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad() || !boundary[i].grad().defined()) continue;
    roots.push_back(outputs[i]);
    gradients.push_back(boundary[i].grad());
  }
  if (!roots.empty()) torch::autograd::backward(roots, gradients);
}

}  // namespace

Step::Result PlainStep::run(const Batch& batch, const Watch& watch) {
  model_.train();
  const PaddingRows padding(batch.valid == 0);
  const Tensors outputs = forward(batch);
  Result result{.outputs = detached(outputs), .weight = batch.weight(), .vocabulary_shard = vocabulary_shard_};
  watch(Stage::kForward, result);

  // The criterion's backward ends at the outputs, so that it can be watched before the model's backward starts.
  Tensors boundary = detached(outputs);
  for (auto& output : boundary) output.requires_grad_(output.is_floating_point());
  const at::Tensor loss = computation_.mean_loss(boundary, batch, result.weight);
  result.loss = loss.detach();
  watch(Stage::kForwardCriterion, result);

  const double scaled = computation_.scale(batch, result.weight, factor_);
  (scaled == 1 ? loss : loss * scaled).backward();
  watch(Stage::kBackwardCriterion, result);

  const at::Tensor auxiliary = auxiliary_loss_ == nullptr ? at::Tensor() : auxiliary_loss_->take_auxiliary_loss();
  backward(outputs, boundary, auxiliary, computation_.scale_of_samples(batch, factor_));
  watch(Stage::kBackward, result);
  return result;
}

Step::Result PlainStep::evaluate(const Batch& batch, const Watch& watch) {
  const at::NoGradGuard no_grad;
  const PaddingRows padding(batch.valid == 0);
  model_.eval();
  Result result{.outputs = forward(batch), .weight = batch.weight(), .vocabulary_shard = vocabulary_shard_};
  watch(Stage::kForward, result);
  result.loss = computation_.mean_loss(result.outputs, batch, result.weight);
  watch(Stage::kForwardCriterion, result);
  return result;
}

Tensors PlainStep::forward(const Batch& batch) {
  Tensors inputs = computation_.inputs(batch);
  const RandomRows rows(computation_.key(batch));
  const Autocast autocast(inputs.at(0).device().type(), computation_.autocast());
  return computation_.predictions(model_.outputs(inputs));
}

}  // namespace phalanx
