// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace phalanx {

/// One of the blocks that make up a model that is a chain: its input is the output of the previous block.
struct Block {
  std::string name;  // "transformer.h.3"

  /// Maps [n, ...] to [n, ...]. May be called any number of times before backward.
  std::function<at::Tensor(const at::Tensor& input)> forward;

  /// Names of the model's parameters and buffers that the block uses. Two blocks may use the same parameter (tied
  /// embeddings).
  std::vector<std::string> parameters, buffers;
};

/// Calls a block's forward, with any work that must be done before and after it.
using BlockRunner = std::function<at::Tensor(const Block& block, const at::Tensor& input)>;

}  // namespace phalanx
