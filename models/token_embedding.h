// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "models/tensor_parallel_layer.h"

namespace phalanx {

/// A table of embeddings of tokens or positions, whole or sharded by rows. Its parameter is "weight" [count, width],
/// normal with mean 0 initially. Its product with a model's output gives scores.
class TokenEmbedding final : public torch::nn::Module, public TensorParallelLayer {
 public:
  TokenEmbedding(std::int64_t count, std::int64_t width, double deviation) {
    weight = register_parameter("weight", at::empty({count, width}).normal_(0, deviation));
  }

  /// Maps int64 [...] to [..., width].
  at::Tensor forward(const at::Tensor& indices) { return table_.look_up(indices, weight); }

  /// Maps [..., width] to [..., count].
  at::Tensor logits(const at::Tensor& x) { return table_.logits(x, weight); }
  VocabularyShardPtr keep_logits_sharded() { return table_.keep_logits_sharded(); }

  Placements shard(TensorStyle style, const CommunicatorPtr& group) override {
    return table_.shard(style, group, weight);
  }
  void enable_sequence_parallel() { table_.enable_sequence_parallel(); }

  at::Tensor weight;

 private:
  TensorParallelEmbedding table_;
};

}  // namespace phalanx
