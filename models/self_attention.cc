// SPDX-License-Identifier: Apache-2.0
#include "models/self_attention.h"

#include <string>
#include <utility>

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
  return attend(query_->forward(x), key_->forward(x), value_->forward(x), head_width_, pattern,
                drops_ ? dropout_.get() : nullptr);
}

Placements SelfAttention::shard(TensorStyle style, const CommunicatorPtr& group) {
  shard_by_heads(style, group, *dropout_);
  Placements placements;
  for (const auto& layer : named_children()) {
    auto* const projection = layer.value()->as<Projection>();
    if (projection == nullptr) continue;  // dropout
    for (auto& [name, placement] : projection->shard(style, group)) {
      placements.emplace(layer.key() + "." + name, std::move(placement));
    }
  }
  return placements;
}

TensorPlan plan_of_encoder(const std::string& prefix, std::int64_t layers, const std::string& attention) {
  TensorPlan plan;
  for (std::int64_t i = 0; i < layers; ++i) {  // the pattern * would match both layers named output.dense
    const auto layer = prefix + std::to_string(i) + ".";
    for (const auto& name : {attention, std::string("intermediate.dense")}) plan[layer + name] = "column";
    for (const char* name : {"attention.output.dense", "output.dense"}) plan[layer + name] = "row";
  }
  return plan;
}

}  // namespace phalanx
