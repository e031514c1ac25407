// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "models/block.h"

namespace phalanx {

/// A model that is a chain of blocks: forward(input) passes the input through all blocks in order. Pipelines and
/// strategies that shard parameters need such a model. Implemented by ChainNetwork (models/chain_network.h).
class BlockChain {
 public:
  virtual ~BlockChain() = default;

  /// Returns the blocks, at least one, and always the same ones.
  virtual const std::vector<Block>& blocks() const = 0;

  /// From now on, forward() calls `runner` for each block instead of Block::forward; null: Block::forward again. Only
  /// one thread at a time may then call forward().
  virtual void set_block_runner(BlockRunner runner) = 0;

  /// Keeps the parameters of these blocks (ascending indices) and frees the memory of all others. From now on,
  /// named_parameters() and named_buffers() return only the tensors of these blocks, and the other blocks and forward()
  /// must not be called. May be called once, after the model has been partitioned.
  virtual void keep_blocks(const std::vector<std::size_t>& blocks) = 0;
};

}  // namespace phalanx
