// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/tensor_parallel_layer.h"

namespace phalanx {

/// A linear layer of a transformer: parameters "weight" and, if it has one, "bias", whole or sharded.
class Projection final : public torch::nn::Module, public TensorParallelLayer {
 public:
  struct Options {
    std::int64_t in, out;
    double deviation;  // of the initial weight, which is normal with mean 0; the bias is initialized with 0
    WeightLayout layout = WeightLayout::kOutIn;
    bool bias = true;
    TensorParallelLinear::Grain grain{};
  };

  explicit Projection(const Options& options);

  /// Maps [..., in] to [..., out].
  at::Tensor forward(const at::Tensor& x) { return product_.forward(x, weight_, bias_); }

  Placements shard(TensorStyle style, const CommunicatorPtr& group) override {
    return product_.shard(style, group, weight_, bias_);
  }
  TensorParallelLinear* linear() override { return &product_; }
  void enable_sequence_parallel(bool overlap) { product_.enable_sequence_parallel(overlap); }

  /// Returns the output of each layer for x. If the layers are sharded by column, x is gathered and its gradient summed
  /// once for all layers. The layers must be kOutIn, without bias, and sharded in the same way.
  static std::vector<at::Tensor> forward_all(const std::vector<std::shared_ptr<Projection>>& layers,
                                             const at::Tensor& x);

 private:
  TensorParallelLinear product_;
  at::Tensor weight_, bias_;
};

}  // namespace phalanx
