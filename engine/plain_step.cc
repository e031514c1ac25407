#include "engine/plain_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "framework/parallel/autocast.h"
#include "models/model.h"

namespace phalanx {

Step::Result PlainStep::run(const Batch& batch, const Watch& watch) {
  model_.train();
  const at::Tensor output = forward(batch.input);
  Result result{.output = output.detach()};
  watch(Stage::kForward, result);

  // The criterion's backward ends at the output, so that it can be watched before the model's begins.
  const at::Tensor boundary = output.detach().requires_grad_();
  const at::Tensor loss = mean_over_valid(boundary, batch);
  result.loss = loss.detach();
  watch(Stage::kForwardCriterion, result);

  const double share = static_cast<double>(batch.valid) * factor_ / static_cast<double>(batch.global_rows);
  const double weight = arithmetic_.loss_scale ? share * arithmetic_.loss_scale() : share;
  (weight == 1 ? loss : loss * weight).backward();
  watch(Stage::kBackwardCriterion, result);

  output.backward(boundary.grad());
  watch(Stage::kBackward, result);
  return result;
}

Step::Result PlainStep::evaluate(const Batch& batch, const Watch& watch) {
  const at::NoGradGuard no_grad;
  model_.eval();
  Result result{.output = forward(batch.input)};
  watch(Stage::kForward, result);
  result.loss = mean_over_valid(result.output, batch);
  watch(Stage::kForwardCriterion, result);
  return result;
}

// The loss sees float32: a softmax of many classes is beyond what fp16 holds.
at::Tensor PlainStep::forward(const at::Tensor& input) {
  const Autocast autocast(input.device().type(), arithmetic_.dtype);
  const at::Tensor output = model_.forward(input.dim() == 4 ? input.contiguous(arithmetic_.images) : input);
  return arithmetic_.dtype == at::kFloat ? output : output.to(at::kFloat);
}

// Padding lies at the end. A batch of padding alone has loss 0, with gradients of 0 rather than none.
at::Tensor PlainStep::mean_over_valid(const at::Tensor& output, const Batch& batch) const {
  if (batch.valid == 0) return output.sum() * 0;
  if (batch.valid == output.size(0)) return loss_.mean(output, batch.target);
  return loss_.mean(output.narrow(0, 0, batch.valid), batch.target.narrow(0, 0, batch.valid));
}

}  // namespace phalanx
