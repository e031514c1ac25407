// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>
#include <vector>

#include "engine/kept_values.h"
#include "engine/step/step_listener.h"

namespace phalanx {

/// Keeps padding out of buffers that differ by rank, such as batch norm's statistics of this rank's shares: if a share
/// has no samples, a row of padding is computed instead, and the buffers are restored afterwards.
class PaddingOnlyGuard final : public StepListener {
 public:
  /// `buffers` must be the model's.
  explicit PaddingOnlyGuard(std::vector<at::Tensor> buffers) : buffers_(std::move(buffers)) {}

  void before_step(const Batch& batch) override {
    if (batch.valid == 0) kept_.emplace(buffers_);
  }
  void after_step() override { kept_.reset(); }

 private:
  std::vector<at::Tensor> buffers_;
  std::optional<RestoreTensorsGuard> kept_;  // during a step without samples
};

}  // namespace phalanx
