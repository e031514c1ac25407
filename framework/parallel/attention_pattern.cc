// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/attention_pattern.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

namespace phalanx {

at::Tensor attention_mask(const AttentionPattern& pattern, const at::Tensor& query, const at::Tensor& key,
                          const QueryBlock& block) {
  at::Tensor mask;
  if (pattern.keys.defined()) {
    mask = pattern.keys.narrow(0, block.first_sample, block.samples).unsqueeze(1).unsqueeze(1);
  }
  if (pattern.causal) {
    const at::Tensor earlier =
        at::ones({block.queries, key.size(2)}, query.options().dtype(at::kBool)).tril(block.first_query);
    mask = mask.defined() ? mask.logical_and(earlier) : earlier;
  }
  return mask;
}

at::Tensor attention_mask(const AttentionPattern& pattern, const at::Tensor& query, const at::Tensor& key) {
  return attention_mask(pattern, query, key, {.samples = query.size(0), .queries = query.size(2)});
}

}  // namespace phalanx
