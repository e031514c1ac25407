// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "models/dropout.h"

namespace phalanx {

/// Stochastic depth (Huang et al. 2016, Deep Networks with Stochastic Depth). In training, the output [n, ...] of a
/// residual branch is set to 0 for a whole sample with probability `rate`, and divided by 1 - rate otherwise. Random
/// numbers come from Dropout.
class DropPathImpl : public torch::nn::Module {
 public:
  explicit DropPathImpl(double rate);  // 0 <= rate < 1

  at::Tensor forward(const at::Tensor& branch);

 private:
  double rate_;
  Dropout rows_{nullptr};
};
TORCH_MODULE(DropPath);

}  // namespace phalanx
