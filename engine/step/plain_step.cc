// SPDX-License-Identifier: Apache-2.0
#include "engine/step/plain_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

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
// own addition to the scaled loss. `gradients` are those of the floating-point outputs, undefined if the loss did not
// use one.
void backward(const Tensors& outputs, Tensors gradients, const at::Tensor& auxiliary) {
  Tensors roots, of_roots;
  if (auxiliary.defined() && auxiliary.requires_grad()) {
    roots.push_back(auxiliary);
    of_roots.push_back(at::ones_like(auxiliary));
  }
  auto gradient = gradients.begin();
  for (const auto& output : outputs) {
    if (!output.is_floating_point()) continue;
    if (output.requires_grad() && gradient->defined()) {
      roots.push_back(output);
      of_roots.push_back(std::move(*gradient));
    }
    ++gradient;
  }
  if (!roots.empty()) torch::autograd::backward(roots, of_roots);
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
  Tensors differentiable;
  for (auto& output : boundary) {
    if (output.is_floating_point()) differentiable.push_back(output.requires_grad_());
  }
  const at::Tensor loss = computation_.mean_loss(boundary, batch, result.weight);
  result.loss = loss.detach();
  watch(Stage::kForwardCriterion, result);

  const at::Tensor scaled = computation_.scaled(loss, computation_.share(batch, result.weight, factor_));
  // Unlike backward(), grad() never copies gradients into the layout of the outputs.
  Tensors gradients = torch::autograd::grad({scaled}, differentiable, {},
                                            /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  watch(Stage::kBackwardCriterion, result);

  at::Tensor auxiliary = auxiliary_loss_ == nullptr ? at::Tensor() : auxiliary_loss_->take_auxiliary_loss();
  if (auxiliary.defined()) auxiliary = computation_.scaled(auxiliary, computation_.share_of_samples(batch, factor_));
  backward(outputs, std::move(gradients), auxiliary);
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
