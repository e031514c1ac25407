// SPDX-License-Identifier: Apache-2.0
#include "models/squeeze_excitation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mean.h>

#include "models/convolution.h"

namespace phalanx {

SqueezeExcitation::SqueezeExcitation(std::int64_t channels, std::int64_t squeezed, Activations activations)
    : activations_(activations) {
  fc1_ = register_module("fc1", convolution({.in = channels, .out = squeezed, .kernel = 1, .bias = true}));
  fc2_ = register_module("fc2", convolution({.in = squeezed, .out = channels, .kernel = 1, .bias = true}));
}

at::Tensor SqueezeExcitation::forward(const at::Tensor& x) {
  const at::Tensor means = x.mean({2, 3}, /*keepdim=*/true);
  return x * activations_.scale(fc2_(activations_.squeezed(fc1_(means))));
}

}  // namespace phalanx
