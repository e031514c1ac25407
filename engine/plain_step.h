#pragma once

#include "engine/loss/loss.h"
#include "engine/precision/arithmetic.h"
#include "framework/parallel/step.h"
#include "models/model.h"

namespace phalanx {

/// Forward and backward of the whole batch at once.
class PlainStep final : public Step {
 public:
  /// Gradients are `factor` times this rank's part of those of the global batch's mean loss: the number of ranks, of
  /// which a strategy takes the mean, makes them add up to these. The model and the loss must outlive the step.
  PlainStep(Model& model, const Loss& loss, double factor, Arithmetic arithmetic = {})
      : model_(model), loss_(loss), factor_(factor), arithmetic_(std::move(arithmetic)) {}

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

 private:
  at::Tensor forward(const at::Tensor& input);
  at::Tensor mean_over_valid(const at::Tensor& output, const Batch& batch) const;

  Model& model_;
  const Loss& loss_;
  double factor_;
  Arithmetic arithmetic_;
};

}  // namespace phalanx
