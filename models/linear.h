#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "models/apply_linear.h"

namespace phalanx {

/// torch::nn::Linear, computed by apply_linear(). Its clone() is a torch::nn::Linear.
class LinearImpl : public torch::nn::LinearImpl {
 public:
  using torch::nn::LinearImpl::LinearImpl;
  at::Tensor forward(const at::Tensor& input) { return apply_linear(input, weight, bias); }
};
TORCH_MODULE(Linear);

}  // namespace phalanx
