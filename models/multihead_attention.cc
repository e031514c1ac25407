#include "models/multihead_attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/init.h>

#include "framework/base/error.h"
#include "framework/parallel/autograd_collectives.h"

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

at::Tensor MultiheadAttention::by_head(const at::Tensor& x) const {
  return x.view({x.size(0), x.size(1), -1, head_width_}).transpose(1, 2);
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
  const at::Tensor seen =
      attend(by_head(query), by_head(key), by_head(value), pattern, drops_ ? dropout_.get() : nullptr);
  return out_proj_(seen.transpose(1, 2).flatten(2));
}

Placements MultiheadAttention::divide(TensorStyle style, const CommunicatorPtr& group) {
  if (style != TensorStyle::kColumn) throw ConfigError("is attention, which is divided by column alone");
  Placements placements;
  for (auto& [name, placement] : in_proj_.divide(style, group, in_weight_, in_bias_)) {
    placements.emplace("in_proj_" + name, std::move(placement));
  }
  dropout_->divide_positions(group->size(), [group](const at::Tensor& all) { return take_part(all, 1, group); });
  return placements;
}

}  // namespace phalanx
