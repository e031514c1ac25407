// SPDX-License-Identifier: Apache-2.0
#include "engine/build/cut_blocks.h"

#include <algorithm>
#include <limits>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

std::string names_of(const std::vector<BlockCost>& blocks) {
  std::vector<std::string> names;
  for (const auto& block : blocks) names.push_back(block.name);
  return join(names, ", ");
}

}  // namespace

std::vector<std::size_t> cut_evenly(const std::vector<BlockCost>& blocks, std::size_t stages) {
  const std::size_t count = blocks.size();
  std::vector<double> before(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) before[i + 1] = before[i] + blocks[i].cost;
  // best[s][i]: the largest cost of a stage if the first i blocks are divided into s stages. from[s][i]: the first
  // block of the last of these stages.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(count + 1, kNone));
  std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(count + 1, 0));
  best[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s) {
    for (std::size_t i = s; i <= count; ++i) {
      for (std::size_t j = s - 1; j < i; ++j) {
        const double largest = std::max(best[s - 1][j], before[i] - before[j]);
        if (largest >= best[s][i]) continue;
        best[s][i] = largest;
        from[s][i] = j;
      }
    }
  }
  std::vector<std::size_t> begins{count};
  for (std::size_t s = stages; s > 0; --s) begins.insert(begins.begin(), from[s][begins.front()]);
  return begins;
}

std::vector<std::size_t> cut_at(const std::vector<BlockCost>& blocks, const std::vector<std::string>& names,
                                std::size_t stages) {
  if (names.size() + 1 != stages) {
    throw ConfigError(
        "pipeline.cut: names the first blocks of " + std::to_string(names.size()) +
        " stages, but the number of stages after the first is " + std::to_string(stages - 1) +
        " (mesh.pipe times pipeline.stages_per_rank, minus one); leave it empty for stages of equal cost");
  }
  std::vector<std::size_t> begins{0};
  for (const auto& name : names) {
    const auto found = std::ranges::find(blocks, name, &BlockCost::name);
    if (found == blocks.end()) {
      throw ConfigError("pipeline.cut: \"" + name + "\" is not a block of the model; its blocks are " +
                        names_of(blocks));
    }
    const auto index = static_cast<std::size_t>(found - blocks.begin());
    if (index <= begins.back()) {
      throw ConfigError("pipeline.cut: \"" + name + "\" leaves the stage before it without blocks; name " +
                        std::to_string(stages - 1) + " blocks in the order of " + names_of(blocks) +
                        ", without the first of them");
    }
    begins.push_back(index);
  }
  begins.push_back(blocks.size());
  return begins;
}

}  // namespace phalanx
