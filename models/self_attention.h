// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/attention.h"
#include "models/dropout.h"
#include "models/projection.h"
#include "models/tensor_parallel.h"
#include "models/tensor_parallel_layer.h"

namespace phalanx {

/// The self-attention of Hugging Face's encoders, up to the outputs of the heads: layers query, key and value, each
/// [width, width] with a bias. It is whole or sharded by heads: the module itself by column, and the layer after it by
/// row, with the grain {1, width / heads}.
class SelfAttention final : public torch::nn::Module, public TensorParallelLayer {
 public:
  struct Options {
    std::int64_t width, heads;  // heads divide width
    double deviation;           // standard deviation of the initial weights
    double dropout = 0;         // of attention weights
  };

  explicit SelfAttention(const Options& options);

  /// Maps x [n, t, width] to [n, t, features of the heads on this rank].
  at::Tensor forward(const at::Tensor& x, const AttentionPattern& pattern = {});

  Placements shard(TensorStyle style, const CommunicatorPtr& group) override;

 private:
  std::int64_t head_width_;
  bool drops_;
  std::shared_ptr<Projection> query_, key_, value_;
  Dropout dropout_{nullptr};
};

/// Returns the plan for Hugging Face's encoder layers `prefix`0, `prefix`1 and so on. In each layer, `attention` is a
/// SelfAttention followed by attention.output.dense, and intermediate.dense and output.dense form a pair.
TensorPlan plan_of_encoder(const std::string& prefix, std::int64_t layers, const std::string& attention);

}  // namespace phalanx
