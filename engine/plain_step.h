#pragma once

#include "engine/loss/loss.h"
#include "engine/precision/arithmetic.h"
#include "framework/parallel/step.h"
#include "models/model.h"

namespace phalanx {

/// Forward and backward of the whole batch at once.
class PlainStep final : public Step {
 public:
  /// `ranks`: how many share a global batch. The model and the loss must outlive the step.
  PlainStep(Model& model, const Loss& loss, int ranks, Arithmetic arithmetic = {})
      : model_(model), loss_(loss), ranks_(ranks), arithmetic_(std::move(arithmetic)) {}

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

 private:
  at::Tensor forward(const at::Tensor& input);
  at::Tensor mean_over_valid(const at::Tensor& output, const Batch& batch) const;

  Model& model_;
  const Loss& loss_;
  int ranks_;
  Arithmetic arithmetic_;
};

}  // namespace phalanx
