// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "engine/kept_values.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// A step for models whose buffers differ by rank, such as batch norm's statistics of this rank's shares. If a share
/// has no samples, a row of padding is computed instead, and the buffers are restored afterwards.
class EmptyShareStep final : public Step {
 public:
  /// `inner` must outlive it. `buffers` must be the model's.
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
