// SPDX-License-Identifier: Apache-2.0
#include "models/initial_values.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <numbers>

namespace phalanx {

void initialize_convolutions(torch::nn::Module& root, torch::nn::init::FanModeType mode) {
  const at::NoGradGuard no_grad;
  for (const auto& module : root.modules(/*include_self=*/false)) {
    auto* const conv = module->as<torch::nn::Conv2d>();
    if (conv == nullptr) continue;
    torch::nn::init::kaiming_normal_(conv->weight, 0, mode, torch::kReLU);
    if (conv->bias.defined()) conv->bias.zero_();
  }
}

void initialize_linear(torch::nn::Module& root, double deviation) {
  const at::NoGradGuard no_grad;
  for (const auto& module : root.modules(/*include_self=*/false)) {
    auto* const linear = module->as<torch::nn::Linear>();
    if (linear == nullptr) continue;
    linear->weight.normal_(0, deviation);
    linear->bias.zero_();
  }
}

void truncated_normal(at::Tensor values, double deviation) {
  const at::NoGradGuard no_grad;
  const double half = std::erf(2 / deviation / std::numbers::sqrt2);  // probability of a value in [-2, 2]
  values.uniform_(-half, half).erfinv_().mul_(deviation * std::numbers::sqrt2).clamp_(-2, 2);
}

}  // namespace phalanx
