// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/sequence.h"
#include "models/tensor_parallel_layer.h"

namespace phalanx {

/// A torch::nn::Conv2d, with the same parameters, whole or sharded by channels. Its clone() is a torch::nn::Conv2d.
class Conv2dImpl final : public torch::nn::Conv2dImpl, public TensorParallelLayer {
 public:
  using torch::nn::Conv2dImpl::Conv2dImpl;

  /// Maps [n, in, h, w] to [n, out, h, w].
  at::Tensor forward(const at::Tensor& input);

  /// Throws ConfigError for a convolution with several groups.
  Placements shard(TensorStyle style, const CommunicatorPtr& group) override;

 private:
  at::Tensor convolve(const at::Tensor& input, const at::Tensor& bias) const;

  TensorStyle style_ = TensorStyle::kColumn;
  CommunicatorPtr group_;            // null: the layer is whole
  std::vector<std::int64_t> sizes_;  // channels of all ranks' parts of the output
};
TORCH_MODULE(Conv2d);

/// A convolution of images [n, in, h, w], padded such that stride 1 keeps their size.
struct Convolution {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 3;  // odd
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  bool bias = false;
};

Conv2d convolution(const Convolution& shape);

/// Options of batch norm, as in torch::nn.
struct NormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
};

/// Returns torchvision's Conv2dNormActivation: layer "0", the convolution, layer "1", a BatchNorm2d, and the
/// activation, unless it is empty.
std::shared_ptr<Sequence> conv_norm(const Convolution& shape, Sequence::Function activation, NormOptions norm = {});

}  // namespace phalanx
