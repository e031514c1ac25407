// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "models/activation_checkpointing.h"
#include "models/block_chain.h"
#include "models/network.h"
#include "models/sequence.h"

namespace phalanx {

/// The base class of networks that are a chain of blocks, each of which maps one tensor to one tensor. The constructor
/// adds the blocks, at least one. Most chains derive from RecomputableChain.
class ChainNetwork : public Network, public BlockChain {
 public:
  at::Tensor forward(at::Tensor input) override;  // runs the blocks

  NamedTensors named_parameters() const override;
  NamedTensors named_buffers() const override;

  const std::vector<Block>& blocks() const override { return blocks_; }
  void set_block_runner(BlockRunner runner) override;
  void keep_blocks(const std::vector<std::size_t>& blocks) override;

 protected:
  /// Adds the next block. `used` has the names of the modules or parameters that it uses.
  void add_block(std::string name, const std::vector<std::string>& used,
                 std::function<at::Tensor(const at::Tensor& input)> forward);

  /// Adds the layers of a sequence, registered as `name`, as the next blocks. Each layer that has parameters and is not
  /// a batch norm begins a block.
  void add_blocks(const std::string& name, const Sequence& sequence);

  /// Implements ActivationCheckpointing::checkpoint_activations().
  bool recompute_blocks(const CheckpointedSegments& segments);

 private:
  void on_adapted(const std::string& weight, const std::vector<std::string>& added) override;
  at::Tensor run(std::size_t begin, std::size_t end, at::Tensor x) const;

  std::vector<Block> blocks_;
  BlockRunner runner_;  // null: Block::forward
  CheckpointedSegments segments_;
  std::set<std::string, std::less<>> dropped_;  // parameters and buffers of blocks that were not kept
};

/// The base class of chains whose blocks may be computed again in backward. This is the case for all blocks that do not
/// communicate in forward, as layers of experts do.
class RecomputableChain : public ChainNetwork, public ActivationCheckpointing {
 public:
  bool checkpoint_activations(const CheckpointedSegments& segments) override { return recompute_blocks(segments); }
};

}  // namespace phalanx
