#include "models/self_attention.h"

#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/parallel/autograd_collectives.h"

namespace phalanx {

SelfAttention::SelfAttention(const Options& options)
    : head_width_(options.width / options.heads), drops_(options.dropout > 0) {
  const auto add = [&](const char* name) {
    return register_module(
        name,
        std::make_shared<Projection>(Projection::Options{
            .in = options.width, .out = options.width, .deviation = options.deviation, .grain = {1, head_width_}}));
  };
  query_ = add("query");
  key_ = add("key");
  value_ = add("value");
  dropout_ = register_module("dropout", Dropout(options.dropout));
}

at::Tensor SelfAttention::forward(const at::Tensor& x, const AttentionPattern& pattern) {
  const auto by_head = [&](const at::Tensor& part) {
    return part.view({part.size(0), part.size(1), -1, head_width_}).transpose(1, 2);
  };
  const at::Tensor seen = attend(by_head(query_->forward(x)), by_head(key_->forward(x)), by_head(value_->forward(x)),
                                 pattern, drops_ ? dropout_.get() : nullptr);
  return seen.transpose(1, 2).flatten(2);
}

Placements SelfAttention::divide(TensorStyle style, const CommunicatorPtr& group) {
  if (style != TensorStyle::kColumn) throw ConfigError("is attention, which is divided by column alone");
  Placements placements;
  for (const auto& layer : named_children()) {
    auto* const projection = layer.value()->as<Projection>();
    if (projection == nullptr) continue;  // dropout
    for (auto& [name, placement] : projection->divide(style, group)) {
      placements.emplace(layer.key() + "." + name, std::move(placement));
    }
  }
  dropout_->divide_positions(group->size(), [group](const at::Tensor& all) { return take_part(all, 1, group); });
  return placements;
}

}  // namespace phalanx
