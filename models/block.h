// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace phalanx {

/// One of the blocks that a model is a chain of: of what the block before it gives, it makes what the next one takes.
struct Block {
  std::string name;  // "transformer.h.3"

  /// [n, ...] -> [n, ...]. May be called any number of times before backward.
  std::function<at::Tensor(const at::Tensor& input)> forward;

  /// Names of the model's parameters and buffers that it uses. Two blocks may use the same parameter (tied embeddings).
  std::vector<std::string> parameters, buffers;
};

/// Calls a block's forward, with whatever has to be done before and after it.
using BlockRunner = std::function<at::Tensor(const Block& block, const at::Tensor& input)>;

}  // namespace phalanx
