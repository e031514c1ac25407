// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>

#include "models/activation_checkpointing.h"

namespace phalanx {

/// Consecutive blocks of a chain.
struct BlockRange {
  std::size_t begin = 0, end = 0;
};

/// Calls `run` for `blocks`, which are part of a chain of `count` blocks. If `segments.count` > 0, divides the blocks,
/// except the first and the last block of the chain, into this number of runs, at most one per block, and keeps only
/// the inputs of the runs for backward (framework/parallel/checkpointed.h). The captures of `run` must live until
/// backward.
at::Tensor run_in_segments(BlockRange blocks, std::size_t count, const CheckpointedSegments& segments,
                           const std::function<at::Tensor(BlockRange blocks, at::Tensor x)>& run, at::Tensor x);

}  // namespace phalanx
