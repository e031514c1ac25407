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

/// The block of MobileNetV3 (Howard et al. 2019, section 5) and, as MBConv, of EfficientNet (Tan and Le 2019): a 1 x 1
/// convolution to more channels, one for each channel alone, squeeze-and-excitation, and a 1 x 1 convolution to fewer;
/// what came in is added where shapes are equal. Names below "block", as torchvision's.
class InvertedResidual final : public torch::nn::Module {
 public:
  struct Shape {
    std::int64_t in = 0;
    std::int64_t expanded = 0;  // as `in`: without the first convolution
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

/// The multiple of 8 next to `channels`, at least 8 and 0.9 times as many: how these families round their widths.
std::int64_t make_divisible(double channels);

}  // namespace phalanx
