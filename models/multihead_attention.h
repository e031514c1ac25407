// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "models/attention.h"
#include "models/dropout.h"
#include "models/linear.h"
#include "models/tensor_parallel_layer.h"

namespace phalanx {

/// A torch.nn.MultiheadAttention, with its names, layouts and initial values: in_proj_weight [3 width, width] and
/// in_proj_bias for queries, keys and values, and out_proj.{weight, bias}. It is whole or sharded by heads: the layer
/// itself by column, out_proj by row.
class MultiheadAttention final : public torch::nn::Module, public TensorParallelLayer {
 public:
  /// `dropout` applies to attention weights. `heads` must divide `width`.
  MultiheadAttention(std::int64_t width, std::int64_t heads, double dropout);

  /// Computes self-attention of x [n, t, width]. The result has the same shape.
  at::Tensor forward(const at::Tensor& x, const AttentionPattern& pattern = {});

  /// Computes cross-attention of x [n, t, width] to memory [n, s, width]. The result has the shape of x.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, const AttentionPattern& pattern);

  Placements shard(TensorStyle style, const CommunicatorPtr& group) override;

 private:
  at::Tensor attend_and_project(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                const AttentionPattern& pattern);

  std::int64_t head_width_;
  bool drops_;
  TensorParallelLinear in_proj_;
  at::Tensor in_weight_, in_bias_;
  Linear out_proj_{nullptr};
  Dropout dropout_{nullptr};
};

}  // namespace phalanx
