// SPDX-License-Identifier: Apache-2.0
#include "engine/build/cut_blocks.h"

#include <gmock/gmock.h>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<BlockCost> blocks_of(const std::vector<double>& costs) {
  std::vector<BlockCost> blocks;
  for (std::size_t i = 0; i < costs.size(); ++i) blocks.push_back({"b" + std::to_string(i), costs[i]});
  return blocks;
}

TEST(CutEvenly, MakesTheLargestStageAsSmallAsItCanBe) {
  EXPECT_THAT(cut_evenly(blocks_of({1, 1, 1, 1}), 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(cut_evenly(blocks_of({1, 5, 1, 1, 1, 1}), 2), ElementsAre(0, 2, 6));
  EXPECT_THAT(cut_evenly(blocks_of({1, 1, 9}), 2), ElementsAre(0, 2, 3));
  EXPECT_THAT(cut_evenly(blocks_of({9, 0, 0}), 3), ElementsAre(0, 1, 2, 3)) << "one block for each stage";
  EXPECT_THAT(cut_evenly(blocks_of({2, 3}), 1), ElementsAre(0, 2));
}

std::string refusal_of_cut(const std::vector<std::string>& names, std::size_t stages) {
  try {
    cut_at(blocks_of({1, 1, 1}), names, stages);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(CutAt, TakesTheFirstBlocksOfStages) {
  EXPECT_THAT(cut_at(blocks_of({1, 1, 1}), {"b1", "b2"}, 3), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(refusal_of_cut({"b1"}, 3),
              HasSubstr("names the first blocks of 1 stages, but the number of stages after the first is 2"));
  EXPECT_THAT(refusal_of_cut({"b7"}, 2), HasSubstr("\"b7\" is not a block of the model; its blocks are b0, b1, b2"));
  EXPECT_THAT(refusal_of_cut({"b0"}, 2), HasSubstr("leaves the stage before it without blocks"));
  EXPECT_THAT(refusal_of_cut({"b2", "b1"}, 3), HasSubstr("leaves the stage before it without blocks"));
}

}  // namespace
}  // namespace phalanx
