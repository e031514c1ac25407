// SPDX-License-Identifier: Apache-2.0
#include "models/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <limits>
#include <optional>

#include "framework/base/error.h"
#include "framework/parallel/autograd_collectives.h"

namespace phalanx {
namespace {

// Returns a bool mask that broadcasts to [n, heads, t, s], or nullopt if every query attends to every key.
std::optional<at::Tensor> mask_of(const AttentionPattern& pattern, const at::Tensor& query, const at::Tensor& key) {
  std::optional<at::Tensor> mask;
  if (pattern.keys.defined()) mask = pattern.keys.unsqueeze(1).unsqueeze(1);
  if (pattern.causal) {
    const at::Tensor earlier = at::ones({query.size(2), key.size(2)}, query.options().dtype(at::kBool)).tril();
    mask = mask ? mask->logical_and(earlier) : earlier;
  }
  return mask;
}

// Computes attention for query [n, heads, t, head width] and key and value [n, heads, s, head width]. The result has
// the shape of query.
at::Tensor of_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const AttentionPattern& pattern, const DropoutImpl* dropout) {
  if (dropout == nullptr || !dropout->is_training()) {
    const bool causal_alone = pattern.causal && !pattern.keys.defined();
    const auto mask = causal_alone ? std::nullopt : mask_of(pattern, query, key);
    return at::scaled_dot_product_attention(query, key, value, mask, 0.0, causal_alone);
  }
  at::Tensor scores = at::matmul(query, key.transpose(2, 3)) / std::sqrt(static_cast<double>(query.size(3)));
  if (const auto mask = mask_of(pattern, query, key)) {
    scores = scores.masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
  }
  return at::matmul(dropout->forward(scores.softmax(-1)), value);
}

}  // namespace

at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, std::int64_t head_width,
                  const AttentionPattern& pattern, const DropoutImpl* dropout) {
  const auto by_head = [head_width](const at::Tensor& x) {
    return x.view({x.size(0), x.size(1), -1, head_width}).transpose(1, 2);
  };
  return of_heads(by_head(query), by_head(key), by_head(value), pattern, dropout).transpose(1, 2).flatten(2);
}

void shard_by_heads(TensorStyle style, const CommunicatorPtr& group, DropoutImpl& dropout) {
  if (style != TensorStyle::kColumn) throw ConfigError("is attention, which can only be divided by column");
  dropout.shard_positions(group->size(), [group](const at::Tensor& all) { return take_part(all, 1, group); });
}

}  // namespace phalanx
