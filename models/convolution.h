#pragma once

#include <torch/nn/modules/conv.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "models/sequence.h"

namespace phalanx {

/// A convolution of pictures [n, in, h, w], padded so that stride 1 keeps their size.
struct Convolution {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 3;  // odd
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  bool bias = false;
};

torch::nn::Conv2d convolution(const Convolution& shape);

/// Options of batch norm, as torch::nn has them.
struct NormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
};

/// The Conv2dNormActivation of torchvision: layers "0", the convolution, "1", a BatchNorm2d, and the activation; none
/// where it is empty.
std::shared_ptr<Sequence> conv_norm(const Convolution& shape, Sequence::Function activation, NormOptions norm = {});

}  // namespace phalanx
