// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "models/convolution.h"
#include "models/drop_path.h"
#include "models/sequence.h"
#include "models/squeeze_excitation.h"

namespace phalanx {

/// The block of MobileNetV3 (Howard et al. 2019, section 5) and EfficientNet (Tan and Le 2019), there called MBConv: a
/// 1 x 1 convolution to more channels, a depthwise convolution, squeeze-and-excitation, and a 1 x 1 convolution to
/// fewer channels. The input is added if the shapes are equal. Parameter names below "block" are torchvision's.
class InvertedResidual final : public torch::nn::Module {
 public:
  struct Shape {
    std::int64_t in = 0;
    std::int64_t expanded = 0;  // equal to `in`: without the first convolution
    std::int64_t out = 0;
    std::int64_t kernel = 3;
    std::int64_t stride = 1;
    std::int64_t squeezed = 0;  // 0: without squeeze-and-excitation
    double drop = 0;            // rate of stochastic depth
  };

  struct Functions {
    SqueezeExcitation::Function activation;
    SqueezeExcitation::Activations excitation;
    NormOptions norm{};
  };

  InvertedResidual(const Shape& shape, const Functions& functions);

  at::Tensor forward(const at::Tensor& x);

 private:
  bool residual_;
  std::shared_ptr<Sequence> block_;
  DropPath drop_{nullptr};
};

/// Rounds `channels` to a multiple of 8 that is at least 8 and at least 0.9 `channels`, as these model families do.
std::int64_t make_divisible(double channels);

}  // namespace phalanx
