// SPDX-License-Identifier: Apache-2.0
#include "engine/step/computation.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <utility>

namespace phalanx {
namespace {

at::Tensor in_double(const at::Tensor& tensor) { return tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor; }

}  // namespace

Tensors Computation::inputs(const Batch& batch) const {
  Tensors inputs = batch.inputs;
  for (auto& input : inputs) input = laid_out(doubles() ? in_double(input) : input);
  return inputs;
}

at::Tensor Computation::laid_out(at::Tensor input) const {
  return input.dim() == 4 ? input.contiguous(arithmetic_.images) : input;
}

std::optional<RandomKey> Computation::key(const Batch& batch) const {
  if (!current_) return std::nullopt;
  return RandomKey{
      .step = current_->seed(), .first_row = batch.first_row, .step_on_device = current_->seed_on_device()};
}

// Losses get at least float32, or convert themselves: a softmax over many classes exceeds the range of fp16.
Tensors Computation::predictions(Tensors outputs) const {
  for (auto& output : outputs) {
    if (doubles() || arithmetic_.dtype == at::kFloat || !output.is_floating_point()) continue;
    if (output.is_cpu() || !task_.takes_16_bits()) output = output.to(at::kFloat);
  }
  return task_.predictions(std::move(outputs));
}

at::Tensor Computation::mean_loss(const Tensors& predictions, Batch batch, double weight) const {
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

at::Tensor Computation::mean_loss_of_valid(Tensors predictions, const Batch& batch) const {
  if (vocabulary_shard_ == nullptr) return task_.mean_loss(predictions, batch);
  return task_.mean_loss_of_parts(std::move(predictions), *vocabulary_shard_, batch);
}

double Computation::share(const Batch& batch, double weight, double factor) const {
  return weight > 0 ? weight * factor / batch.weight_of_all() : 0;
}

double Computation::share_of_samples(const Batch& batch, double factor) const {
  const auto valid = static_cast<double>(batch.valid), all = static_cast<double>(batch.global_rows);
  return valid > 0 ? valid * factor / all : 0;
}

// The factor is rounded once, as a number of the host would be.
at::Tensor Computation::scaled(const at::Tensor& loss, double share) const {
  if (!arithmetic_.loss_scale.defined()) return share == 1 ? loss : loss * share;
  return loss * arithmetic_.loss_scale.to(at::kDouble).mul_(share).to(loss.scalar_type());
}

}  // namespace phalanx
