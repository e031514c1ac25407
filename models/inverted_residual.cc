// SPDX-License-Identifier: Apache-2.0
#include "models/inverted_residual.h"

#include <ATen/TensorOperators.h>

#include <algorithm>

namespace phalanx {

InvertedResidual::InvertedResidual(const Shape& shape, const Functions& functions)
    : residual_(shape.stride == 1 && shape.in == shape.out) {
  const auto& [activation, excitation, norm] = functions;
  const auto wide = shape.expanded;
  block_ = register_module("block", std::make_shared<Sequence>());
  if (wide != shape.in) block_->add(conv_norm({.in = shape.in, .out = wide, .kernel = 1}, activation, norm));
  block_->add(conv_norm({.in = wide, .out = wide, .kernel = shape.kernel, .stride = shape.stride, .groups = wide},
                        activation, norm));
  if (shape.squeezed > 0) block_->add(std::make_shared<SqueezeExcitation>(wide, shape.squeezed, excitation));
  block_->add(conv_norm({.in = wide, .out = shape.out, .kernel = 1}, {}, norm));
  drop_ = register_module("stochastic_depth", DropPath(shape.drop));
}

at::Tensor InvertedResidual::forward(const at::Tensor& x) {
  const at::Tensor made = block_->forward(x);
  return residual_ ? drop_(made) + x : made;
}

std::int64_t make_divisible(double channels) {
  const auto rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

}  // namespace phalanx
