// SPDX-License-Identifier: Apache-2.0
#include "models/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

#include <optional>

#include "framework/base/error.h"
#include "framework/parallel/attention_with_dropout.h"

namespace phalanx {
namespace {

// Computes attention for query [n, heads, t, head width] and key and value [n, heads, s, head width]. The result has
// the shape of query.
at::Tensor of_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const AttentionPattern& pattern, const DropoutImpl* dropout) {
  if (dropout != nullptr && dropout->drops()) {
    return attention_with_dropout(query, key, value, pattern, dropout->numbers(query.size(1), query.device()));
  }
  const bool causal_alone = pattern.causal && !pattern.keys.defined();
  const at::Tensor mask = causal_alone ? at::Tensor() : attention_mask(pattern, query, key);
  return at::scaled_dot_product_attention(query, key, value, mask.defined() ? std::optional(mask) : std::nullopt, 0.0,
                                          causal_alone);
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
  dropout.shard_positions(group->size(), group->rank());
}

}  // namespace phalanx
