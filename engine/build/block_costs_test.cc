// SPDX-License-Identifier: Apache-2.0
#include "engine/build/block_costs.h"

#include <gmock/gmock.h>

#include "engine/build/tensor_holders.h"
#include "engine/testing/phases.h"

namespace phalanx {
namespace {

using testing::configured;
using ::testing::ElementsAre;
using testing::run_ranks;
using ::testing::SizeIs;

TEST(MeasureBlocks, CountsTheOperationsAndParametersOfEachBlock) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({});
    const auto model = run.initial_model();
    const auto measured = measure_blocks(*model, *run.task, run.mesh(world), {});
    ASSERT_THAT(measured.costs, SizeIs(2));
    EXPECT_EQ(measured.costs[0].name, "fc1");
    EXPECT_GE(measured.costs[1].cost, 2 * (8 * 3 + 3)) << "counts the parameters on both ranks";
    EXPECT_GT(measured.costs[0].cost, measured.costs[1].cost)
        << "a product of [1, 4] and [4, 8], then of [1, 8] and [8, 3]";
    EXPECT_THAT(measured.outputs[0].shape, ElementsAre(8));
    EXPECT_THAT(measured.outputs[1].shape, ElementsAre(3));
    EXPECT_THAT(measured.predictions, SizeIs(1));
  });
}

TEST(TensorHolders, AreTheRanksThatKeepABlockWithTheTensor) {
  const auto run = configured({});
  const TensorHolders holders(*run.initial_model(), {{0, 1}, {1}});
  EXPECT_THAT(holders.ranks("fc1.weight"), ElementsAre(0));
  EXPECT_THAT(holders.ranks("fc2.bias"), ElementsAre(0, 1));
  EXPECT_THAT(holders.parameters(), SizeIs(4));
}

}  // namespace
}  // namespace phalanx
