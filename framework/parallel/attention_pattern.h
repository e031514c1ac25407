// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace phalanx {

/// The keys that each query attends to.
struct AttentionPattern {
  at::Tensor keys{};    // bool [n, s]: the keys to use in each sample, at least one; undefined: all keys
  bool causal = false;  // query i attends only to keys 0 ... i
};

/// Some queries of some samples, all of whose heads and keys are computed together.
struct QueryBlock {
  std::int64_t first_sample = 0, samples = 0;
  std::int64_t first_query = 0, queries = 0;
};

/// Returns a bool mask that broadcasts to the scores of the block, [samples, heads, queries, keys]: true if the query
/// attends to the key. Returns an undefined tensor if all queries attend to all keys. `query` [n, heads, t, width] and
/// `key` [n, heads, s, width] are those of all samples.
at::Tensor attention_mask(const AttentionPattern& pattern, const at::Tensor& query, const at::Tensor& key,
                          const QueryBlock& block);

/// The same for all queries of all samples.
at::Tensor attention_mask(const AttentionPattern& pattern, const at::Tensor& query, const at::Tensor& key);

}  // namespace phalanx
