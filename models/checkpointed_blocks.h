#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/parallel/checkpointed.h"

namespace phalanx {

/// One block after the other, in `segments` nearly equal runs, each of them checkpointed; 0: none is.
/// Block: forward(tensor) -> tensor. The blocks must live until backward is done.
template <class Block>
at::Tensor forward_in_segments(const std::vector<std::shared_ptr<Block>>& blocks, std::int64_t segments,
                               at::Tensor input) {
  const auto count = static_cast<std::int64_t>(blocks.size());
  const auto runs = std::clamp<std::int64_t>(segments, 1, std::max<std::int64_t>(count, 1));
  for (std::int64_t run = 0; run < runs; ++run) {
    const auto pass = [&blocks, begin = count * run / runs, end = count * (run + 1) / runs](const at::Tensor& x) {
      at::Tensor y = x;
      for (auto i = begin; i < end; ++i) y = blocks[static_cast<std::size_t>(i)]->forward(y);
      return y;
    };
    input = segments > 0 ? checkpointed(pass, input) : pass(input);
  }
  return input;
}

}  // namespace phalanx
