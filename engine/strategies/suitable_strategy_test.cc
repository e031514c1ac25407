// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/suitable_strategy.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/testing/strategy.h"
#include "framework/base/config/config.h"
#include "framework/base/cores.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

std::string text_of(const Strategies::Choice& strategy) { return config::dump_as("strategy", strategy); }

std::string chosen(const RankPlacement& placement) { return text_of(suitable_strategy(placement)); }

std::string named(const std::string& yaml) { return text_of(testing::load_strategy(yaml)); }

TEST(SuitableStrategy, DependsOnThePlacementOfRanks) {
  EXPECT_EQ(chosen({.ranks = 1}), named("single"));
  EXPECT_EQ(chosen({.ranks = 1, .one_numa_node = false}), named("single"));
  EXPECT_EQ(chosen({.ranks = 2}), named("{name: sharded, one_copy: true}"));
  EXPECT_EQ(chosen({.ranks = 2, .one_numa_node = false}), named("all_reduce"));
  EXPECT_EQ(chosen({.ranks = 2, .shares_memory = false}), named("overlapped"));
  EXPECT_EQ(chosen({.ranks = 2, .shares_memory = false, .one_numa_node = false}), named("overlapped"));
}

TEST(SuitableStrategy, IsExactAndFitsTheRanks) {
  for (const int ranks : {1, 2}) {
    for (const bool shares_memory : {false, true}) {
      for (const bool one_numa_node : {false, true}) {
        const auto traits = suitable_strategy({ranks, shares_memory, one_numa_node}).traits();
        EXPECT_TRUE(traits.reduces_gradients);
        EXPECT_FALSE(traits.remembers_gradients);
        EXPECT_TRUE(!traits.one_rank || ranks == 1);
        EXPECT_TRUE(!traits.shared_memory || shares_memory);
      }
    }
  }
}

// Threads that are bound to one core are in one NUMA node, even on a machine with several.
TEST(SuitableStrategy, RanksPinnedToACoreAreInOneNumaNode) {
  ASSERT_FALSE(allowed_cores().empty());
  const int core = allowed_cores().front();
  testing::run_ranks("inproc", 3, [&](const CommunicatorPtr& group) {
    ASSERT_TRUE(stay_on_cores({core}));
    const auto placement = placement_of(*group);
    EXPECT_EQ(placement.ranks, 3);
    EXPECT_TRUE(placement.shares_memory);
    EXPECT_TRUE(placement.one_numa_node);
  });
}

TEST(SuitableStrategy, AGroupSaysWhetherItSharesMemory) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    testing::WithoutSharedMemory separate(group);
    EXPECT_FALSE(placement_of(separate).shares_memory);
  });
}

}  // namespace
}  // namespace phalanx
