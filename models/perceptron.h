// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/relu.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/linear.h"

namespace phalanx {

/// Linear layers with these widths and ReLU between them, and after the last one if `relu_at_end`: [n, in] -> [n, out].
/// Parameters fc<i>.{weight, bias}.
class Perceptron final : public torch::nn::Module {
 public:
  Perceptron(std::int64_t in, const std::vector<std::int64_t>& widths, bool relu_at_end) : relu_at_end_(relu_at_end) {
    for (const auto width : widths) {
      layers_.push_back(register_module("fc" + std::to_string(layers_.size() + 1), Linear(in, width)));
      in = width;
    }
  }

  at::Tensor forward(at::Tensor x) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      x = layers_[i](x);
      if (relu_at_end_ || i + 1 < layers_.size()) x = at::relu(x);
    }
    return x;
  }

 private:
  bool relu_at_end_;
  std::vector<Linear> layers_;
};

}  // namespace phalanx
