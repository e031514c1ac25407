// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Causal attention over sequences whose positions are sharded over the ranks of `group` (Liu et al. 2023, Ring
/// Attention with Blockwise Transformers, arXiv:2310.01889). Each rank keeps its queries, and keys and values travel
/// round the ring of ranks, P - 1 times to the next rank. LibTorch's kernels compute each block (block_attention.h),
/// and blocks are merged by the logarithm of their sums of exponentials (Dao et al. 2022, arXiv:2205.14135,
/// section 3.1). No rank ever has the keys of more than two ranks.
///
/// query, key, value: [n, heads, positions, head width], for this rank's positions as shard_sequence()
/// (framework/partition/sequence_shard.h) returns them, the same number on all ranks. Keys and values may have fewer
/// heads, each shared by several consecutive query heads; they travel as they are. The result has the shape and
/// dtype of query. Scores are scaled by 1 / sqrt(head width). Dtypes: float32, float64, bfloat16 or float16; sums over
/// blocks are float32 at least. Once differentiable. A group of one rank computes plain attention.
///
/// Bytes on the wire, with b bytes of keys per rank: each rank sends 2 (P - 1) b in forward. In backward it sends the
/// same again for keys and values, and the same for their gradients (twice that for 16-bit dtypes, whose gradients are
/// sent as float32). A rank sends a block to the next rank before it computes with it, so the two overlap if messages
/// of the group make progress on their own.
///
/// All ranks of the group call it in the same order, forward and backward.
at::Tensor ring_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const CommunicatorPtr& group);

}  // namespace phalanx
