// SPDX-License-Identifier: Apache-2.0
#include "models/multihead_attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/init.h>

namespace phalanx {

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t heads, double dropout)
    : head_width_(width / heads),
      drops_(dropout > 0),
      in_proj_(WeightLayout::kOutIn, {.packs = 3, .unit = width / heads}) {
  in_weight_ = register_parameter("in_proj_weight", at::empty({3 * width, width}));
  in_bias_ = register_parameter("in_proj_bias", at::zeros({3 * width}));
  out_proj_ = register_module("out_proj", Linear(width, width));
  dropout_ = register_module("dropout", Dropout(dropout));
  const at::NoGradGuard no_grad;
  torch::nn::init::xavier_uniform_(in_weight_);
  out_proj_->bias.zero_();
}

at::Tensor MultiheadAttention::forward(const at::Tensor& x, const AttentionPattern& pattern) {
  const auto parts = in_proj_.forward(x, in_weight_, in_bias_).chunk(3, -1);
  return attend_and_project(parts[0], parts[1], parts[2], pattern);
}

at::Tensor MultiheadAttention::forward(const at::Tensor& x, const at::Tensor& memory, const AttentionPattern& pattern) {
  const auto width = in_weight_.size(0) / 3;
  const auto project = [&](const at::Tensor& input, std::int64_t first, std::int64_t count) {
    return in_proj_.forward(input, in_weight_.narrow(0, first * width, count * width),
                            in_bias_.narrow(0, first * width, count * width));
  };
  const auto parts = project(memory, 1, 2).chunk(2, -1);
  return attend_and_project(project(x, 0, 1), parts[0], parts[1], pattern);
}

at::Tensor MultiheadAttention::attend_and_project(const at::Tensor& query, const at::Tensor& key,
                                                  const at::Tensor& value, const AttentionPattern& pattern) {
  return out_proj_(attend(query, key, value, head_width_, pattern, drops_ ? dropout_.get() : nullptr));
}

Placements MultiheadAttention::shard(TensorStyle style, const CommunicatorPtr& group) {
  shard_by_heads(style, group, *dropout_);
  Placements placements;
  for (auto& [name, placement] : in_proj_.shard(style, group, in_weight_, in_bias_)) {
    placements.emplace("in_proj_" + name, std::move(placement));
  }
  return placements;
}

}  // namespace phalanx
