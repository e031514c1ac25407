#include "engine/step/plain_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/parallel/autocast.h"
#include "framework/parallel/random_rows.h"

namespace phalanx {
namespace {

Tensors detached(const Tensors& tensors) {
  Tensors all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach());
  return all;
}

at::Tensor in_double(const at::Tensor& tensor) { return tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor; }

// From where the criterion's backward has ended, and from what the model adds to the loss. What the loss did not look
// at has no gradient.
void backward(const Tensors& outputs, const Tensors& boundary, const at::Tensor& auxiliary, double scale) {
  Tensors roots, gradients;
  if (auxiliary.defined()) {
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
  const Tensors outputs = forward(batch);
  Result result{.outputs = detached(outputs), .weight = batch.weight(), .class_parts = class_parts_};
  watch(Stage::kForward, result);

  // The criterion's backward ends at the outputs, so that it can be watched before the model's begins.
  Tensors boundary = detached(outputs);
  for (auto& output : boundary) output.requires_grad_(output.is_floating_point());
  const at::Tensor loss = mean_loss(boundary, batch, result.weight);
  result.loss = loss.detach();
  watch(Stage::kForwardCriterion, result);

  const double share = result.weight > 0 ? result.weight * factor_ / batch.weight_of_all() : 0;
  const double scaled = arithmetic_.loss_scale ? share * arithmetic_.loss_scale() : share;
  (scaled == 1 ? loss : loss * scaled).backward();
  watch(Stage::kBackwardCriterion, result);

  backward(outputs, boundary, model_.take_auxiliary_loss(), scaled);
  watch(Stage::kBackward, result);
  return result;
}

Step::Result PlainStep::evaluate(const Batch& batch, const Watch& watch) {
  const at::NoGradGuard no_grad;
  model_.eval();
  Result result{.outputs = forward(batch), .weight = batch.weight(), .class_parts = class_parts_};
  watch(Stage::kForward, result);
  result.loss = mean_loss(result.outputs, batch, result.weight);
  watch(Stage::kForwardCriterion, result);
  return result;
}

// Losses see at least float32: a softmax of many classes is beyond what fp16 holds.
Tensors PlainStep::forward(const Batch& batch) {
  Tensors inputs = batch.inputs;
  std::optional<RandomKey> key;
  if (seed_) key = RandomKey{.step = *seed_, .first_row = batch.first_row};
  const RandomRows rows(key);
  const Autocast autocast(inputs.at(0).device().type(), doubles() ? at::kFloat : arithmetic_.dtype);
  for (auto& input : inputs) {
    if (doubles()) input = in_double(input);
    if (input.dim() == 4) input = input.contiguous(arithmetic_.images);
  }
  Tensors outputs = model_.outputs(inputs);
  for (auto& output : outputs) {
    if (!doubles() && arithmetic_.dtype != at::kFloat && output.is_floating_point()) output = output.to(at::kFloat);
  }
  return task_.predictions(std::move(outputs));
}

// Padding lies at the end. A batch in which nothing counts has loss 0, with gradients of 0 rather than none.
at::Tensor PlainStep::mean_loss(const Tensors& predictions, Batch batch, double weight) const {
  if (doubles()) std::ranges::transform(batch.targets, batch.targets.begin(), in_double);
  if (weight == 0) {
    at::Tensor nothing = predictions.at(0).sum() * 0;
    for (std::size_t i = 1; i < predictions.size(); ++i) nothing = nothing + predictions[i].sum() * 0;
    return nothing;
  }
  if (batch.valid == batch.rows()) return mean_loss_of_valid(predictions, batch);
  Tensors valid;
  for (const auto& prediction : predictions) valid.push_back(prediction.narrow(0, 0, batch.valid));
  return mean_loss_of_valid(std::move(valid), rows_of(batch, 0, batch.valid));
}

at::Tensor PlainStep::mean_loss_of_valid(Tensors predictions, const Batch& batch) const {
  if (class_parts_ == nullptr) return task_.mean_loss(predictions, batch);
  return task_.mean_loss_of_parts(std::move(predictions), *class_parts_, batch);
}

}  // namespace phalanx
