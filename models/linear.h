// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "models/tensor_parallel_layer.h"

namespace phalanx {

/// A torch::nn::Linear, computed by apply_linear(), whole or sharded. Its clone() is a torch::nn::Linear.
class LinearImpl : public torch::nn::LinearImpl, public TensorParallelLayer {
 public:
  using torch::nn::LinearImpl::LinearImpl;
  at::Tensor forward(const at::Tensor& input) { return product_.forward(input, weight, bias); }

  Placements shard(TensorStyle style, const CommunicatorPtr& group) override {
    return product_.shard(style, group, weight, bias);
  }
  TensorParallelLinear* linear() override { return &product_; }

 private:
  TensorParallelLinear product_{WeightLayout::kOutIn};
};
TORCH_MODULE(Linear);

}  // namespace phalanx
