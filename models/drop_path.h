// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "models/dropout.h"

namespace phalanx {

/// Stochastic depth (Huang et al. 2016, Deep Networks with Stochastic Depth), in training: what a residual branch makes
/// of a sample [n, ...] is left out as a whole with probability `rate`, and else divided by 1 - rate. Random numbers
/// are those of Dropout.
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
