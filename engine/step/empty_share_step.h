// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "engine/kept_values.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// A step of a model whose buffers are this rank's own, as batch norm's statistics of its shares: of a share without
/// samples, in whose place a row of padding runs, they learn nothing.
class EmptyShareStep final : public Step {
 public:
  /// `inner` must outlive it; `buffers` are the model's.
  EmptyShareStep(Step& inner, std::vector<at::Tensor> buffers) : inner_(inner), buffers_(std::move(buffers)) {}

  Result run(const Batch& batch, const Watch& watch) override {
    if (batch.valid > 0) return inner_.run(batch, watch);
    const KeptValues kept(buffers_);
    return inner_.run(batch, watch);
  }
  Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

 private:
  Step& inner_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace phalanx
