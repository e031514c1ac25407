// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "models/tensor_parallel.h"

namespace phalanx {

/// A table of embeddings of tokens or positions, whole or divided by rows. Its parameter is "weight" [count, width],
/// normal with mean 0 initially. Its product with a model's output gives scores.
class TokenEmbedding final : public torch::nn::Module, public TensorParallel {
 public:
  TokenEmbedding(std::int64_t count, std::int64_t width, double deviation) {
    weight = register_parameter("weight", at::empty({count, width}).normal_(0, deviation));
  }

  /// Maps int64 [...] to [..., width].
  at::Tensor forward(const at::Tensor& indices) { return table_.look_up(indices, weight); }

  /// Maps [..., width] to [..., count].
  at::Tensor logits(const at::Tensor& x) { return table_.logits(x, weight); }
  ClassPartsPtr leave_logits_divided() { return table_.leave_logits_divided(); }

  Placements divide(TensorStyle style, const CommunicatorPtr& group) override {
    return table_.divide(style, group, weight);
  }
  void share_positions() { table_.share_positions(); }

  at::Tensor weight;

 private:
  DividedEmbedding table_;
};

}  // namespace phalanx
