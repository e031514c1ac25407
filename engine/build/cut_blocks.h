// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace phalanx {

/// A block of a model, the unit of the division into stages.
struct BlockCost {
  std::string name;
  double cost = 0;  // operations of the forward of one row, plus one for each parameter
};

/// Cuts a chain of blocks into `stages` consecutive stages so that the largest cost of a stage is as small as possible.
/// If there are several such divisions, the first stages are as short as possible. Returns the first block of each
/// stage, followed by the number of blocks. A pure function.
std::vector<std::size_t> cut_evenly(const std::vector<BlockCost>& blocks, std::size_t stages);

/// Returns the same for stages that begin at the blocks `names`, which are the first blocks of all stages except the
/// first. Throws ConfigError unless these are stages - 1 blocks in the order of the chain.
std::vector<std::size_t> cut_at(const std::vector<BlockCost>& blocks, const std::vector<std::string>& names,
                                std::size_t stages);

}  // namespace phalanx
