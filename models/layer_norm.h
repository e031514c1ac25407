// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/normalization.h>

#include <cstdint>

namespace phalanx {

/// Returns a layer norm over the last dimension, which has `width` elements.
inline torch::nn::LayerNorm layer_norm(std::int64_t width, double epsilon) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(epsilon));
}

}  // namespace phalanx
