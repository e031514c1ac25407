// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Causal attention over sequences whose positions the ranks of `group` divide (Liu et al. 2023, Ring Attention with
/// Blockwise Transformers, arXiv:2310.01889): each keeps its queries, and keys and values travel round the ring of
/// ranks, P - 1 times to the next. Each block is computed by LibTorch's flash attention for the CPU, and blocks are
/// merged by the log of the sums of their exponentials (Dao et al. 2022, arXiv:2205.14135, section 3.1). No rank ever
/// has the keys of more than two ranks.
///
/// query, key, value: [n, heads, positions, head width], of this rank's positions as take_positions()
/// (framework/parallel/sequence_part.h) gives them, as many on all ranks. The result is like query. Scores are scaled
/// by 1 / sqrt(head width). Of float32, float64, bfloat16 or float16; sums over blocks are float32 at least. On the
/// CPU. Once differentiable. A group of one rank computes attention as it is.
///
/// On the wire, with b bytes of keys per rank: each sends 2 (P - 1) b forward, and backward again as much for keys and
/// values and as much for their gradients (twice that of 16 bits, whose gradients travel as float32). Blocks are sent
/// to the next rank before the rank computes with them, so that they travel meanwhile where messages of the group move
/// on by themselves.
///
/// All ranks of the group call it in the same order, forward and backward.
at::Tensor ring_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const CommunicatorPtr& group);

}  // namespace phalanx
