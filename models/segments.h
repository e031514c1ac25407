// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace phalanx {

/// Some blocks of a chain, one behind the other.
struct BlockRange {
  std::size_t begin = 0, end = 0;
};

/// Runs `blocks`, of a chain of `count`, by `run`. With `segments` above 0: cuts them, without the chain's first block
/// and its last, into so many runs, at most one for each block, whose inputs alone are kept for backward
/// (framework/parallel/checkpointed.h). What `run` captures must live until backward.
at::Tensor run_in_segments(BlockRange blocks, std::size_t count, std::int64_t segments,
                           const std::function<at::Tensor(BlockRange blocks, at::Tensor x)>& run, at::Tensor x);

}  // namespace phalanx
