// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>

#include "models/convolution.h"

namespace phalanx {

/// Squeeze-and-excitation (Hu et al. 2018, Squeeze-and-Excitation Networks, figure 1): each channel of [n, c, h, w] is
/// multiplied by a factor that two layers compute from the means of all channels. Parameters fc{1,2}.{weight, bias}, as
/// in torchvision.
class SqueezeExcitation final : public torch::nn::Module {
 public:
  using Function = at::Tensor (*)(const at::Tensor&);

  struct Activations {
    Function squeezed;
    Function scale;
  };

  SqueezeExcitation(std::int64_t channels, std::int64_t squeezed, Activations activations);

  at::Tensor forward(const at::Tensor& x);

 private:
  Conv2d fc1_{nullptr}, fc2_{nullptr};
  Activations activations_;
};

}  // namespace phalanx
