// SPDX-License-Identifier: Apache-2.0
#include "models/causal_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "framework/base/error.h"
#include "framework/parallel/ring_attention.h"

namespace phalanx {
namespace {

// Returns [t, keys], true for the keys that each query may attend to. The last query is at the position of the last
// key.
at::Tensor seen(const at::Tensor& query, const at::Tensor& key) {
  const auto t = query.size(2), keys = key.size(2);
  return at::ones({t, keys}, query.options().dtype(at::kBool)).tril(keys - t);
}

}  // namespace

void CausalAttention::enable_context_parallel(const CommunicatorPtr& group) {
  if (!fused_) {
    throw ConfigError(
        "attention: explicit computes all scores of a sequence at once, but ranks of mesh.context have only parts of "
        "it; use attention: sdpa");
  }
  context_ = group;
}

at::Tensor CausalAttention::forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
  at::Tensor keys = key, values = value;
  if (cache_ != nullptr) std::tie(keys, values) = cache_->append(layer_, key, value);
  if (const auto shared = query.size(1) / keys.size(1); shared > 1) {
    keys = keys.repeat_interleave(shared, 1);
    values = values.repeat_interleave(shared, 1);
  }
  return attend(query, keys, values);
}

at::Tensor CausalAttention::attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
  if (context_) return ring_attention(query, key, value, context_);
  const auto t = query.size(2);
  const bool whole = t == key.size(2);
  if (fused_) {
    std::optional<at::Tensor> mask;  // a single query attends to all keys
    if (!whole && t > 1) mask = seen(query, key);
    return at::scaled_dot_product_attention(query, key, value, mask, 0.0, /*is_causal=*/whole);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
  const auto scores = (at::matmul(query, key.transpose(2, 3)) * scale)
                          .masked_fill(seen(query, key).logical_not(), -std::numeric_limits<double>::infinity());
  return at::matmul(scores.softmax(-1), value);
}

}  // namespace phalanx
