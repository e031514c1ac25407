// SPDX-License-Identifier: Apache-2.0
#include "models/causal_attention.h"

#include <ATen/SDPBackend.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <cstdint>
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

// Returns keys or values with a head for each head of the queries.
at::Tensor for_each_head(const at::Tensor& shared, const at::Tensor& query) {
  const auto times = query.size(1) / shared.size(1);
  return times == 1 ? shared : shared.repeat_interleave(times, 1);
}

// Returns true if LibTorch would take a kernel of the device that reads shared heads in place. Otherwise it would
// compute products of whole matrices, unless it is given a head for each query. On the CPU, copies are as good: the
// sum of their gradients stays in the order of the heads.
bool reads_shared_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const std::optional<at::Tensor>& mask, bool causal) {
  if (query.size(1) == key.size(1) || query.is_cpu()) return false;
  const auto kernel = at::_fused_sdp_choice(query, key, value, mask, /*dropout_p=*/0.0, causal, /*scale=*/std::nullopt,
                                            /*enable_gqa=*/true);
  return kernel == static_cast<std::int64_t>(at::SDPBackend::flash_attention) ||
         kernel == static_cast<std::int64_t>(at::SDPBackend::cudnn_attention);
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
  return attend(query, keys, values);
}

at::Tensor CausalAttention::attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
  if (context_) return ring_attention(query, key, value, context_);
  const auto t = query.size(2);
  const bool whole = t == key.size(2);
  if (fused_) {
    std::optional<at::Tensor> mask;  // a single query attends to all keys
    if (!whole && t > 1) mask = seen(query, key);
    if (reads_shared_heads(query, key, value, mask, whole)) {
      return at::scaled_dot_product_attention(query, key, value, mask, 0.0, /*is_causal=*/whole, /*scale=*/std::nullopt,
                                              /*enable_gqa=*/true);
    }
    return at::scaled_dot_product_attention(query, for_each_head(key, query), for_each_head(value, query), mask, 0.0,
                                            /*is_causal=*/whole);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
  const auto scores = (at::matmul(query, for_each_head(key, query).transpose(2, 3)) * scale)
                          .masked_fill(seen(query, key).logical_not(), -std::numeric_limits<double>::infinity());
  return at::matmul(scores.softmax(-1), for_each_head(value, query));
}

}  // namespace phalanx
