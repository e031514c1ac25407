// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"
#include "framework/parallel/attention_pattern.h"
#include "models/dropout.h"
#include "models/tensor_parallel_layer.h"

namespace phalanx {

/// Computes scaled dot-product attention (Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762, section
/// 3.2) of whole sequences. The features are the concatenated features of the heads: query is [n, t, heads x head
/// width], key and value are [n, s, heads x head width], and the result has the shape of query.
///
/// Uses LibTorch's fused kernel, unless `dropout` is given and in training mode. In that case matrix products compute
/// the attention weights and drop some: all at once if they are few, and else a block at a time, and again in backward
/// (attention_with_dropout.h).
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, std::int64_t head_width,
                  const AttentionPattern& pattern, const DropoutImpl* dropout);

/// Prepares the dropout of attention weights in a layer that `style` divides by heads: each rank drops the same weights
/// that the whole layer would. Throws ConfigError for styles other than column.
void shard_by_heads(TensorStyle style, const CommunicatorPtr& group, DropoutImpl& dropout);

}  // namespace phalanx
