// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/mesh/hierarchy.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

// Returns the ranks in scope of the members of `group`, as this rank's peers see them.
std::vector<int> scope_ranks(Communicator& group, int scope_rank) {
  const at::Tensor all = at::full({group.size()}, std::int64_t{-1}, at::kLong);
  group.all_gather(all, at::full({1}, std::int64_t{scope_rank}, at::kLong)).wait();
  const auto* begin = all.const_data_ptr<std::int64_t>();
  return {begin, begin + group.size()};
}

// A key that comes again after another one does not start a new group.
TEST(GroupByKey, SortsRanksByKeyInTheOrderOfRanks) {
  EXPECT_EQ(group_by_key({"b", "a", "b", "c", "a"}), (Groups{{0, 2}, {1, 4}, {3}}));
  EXPECT_EQ(group_by_key({"", ""}), (Groups{{0, 1}}));
  EXPECT_EQ(group_by_key({}), Groups{});
}

// For every number of ranks, without communicators.
TEST(GroupByKey, DistributesRanksInTurn) {
  for (int ranks = 1; ranks <= 37; ++ranks) {
    std::vector<std::string> keys;
    for (int rank = 0; rank < ranks; ++rank) keys.push_back(std::to_string(rank % 3));
    const Groups groups = group_by_key(keys);
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(groups.at(rank % 3).at(rank / 3), rank) << ranks;
    EXPECT_EQ(is_cartesian(groups), ranks < 3 || ranks % 3 == 0) << ranks;
  }
}

class RoundRobinRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RoundRobinRanks, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 9, 12, 16, 23, 36, 37));

TEST_P(RoundRobinRanks, LinksEqualRanksOrLeaders) {
  const int ranks = GetParam();
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const int rank = world->rank();
    const Hierarchy hierarchy(world, {{"turn", std::to_string(rank % 3)}});
    const Level& level = hierarchy.level(1);
    const bool cartesian = ranks < 3 || ranks % 3 == 0;
    EXPECT_EQ(level.intra->rank(), rank / 3);
    EXPECT_EQ(level.group, rank % 3);
    EXPECT_EQ(hierarchy.nodes(), std::min(ranks, 3));
    EXPECT_EQ(level.cartesian(), cartesian);
    EXPECT_EQ(hierarchy.is_cartesian(), cartesian);
    EXPECT_EQ(scope_ranks(*level.intra, rank), level.groups[rank % 3]);

    ASSERT_EQ(level.inter != nullptr, cartesian || rank < 3);
    if (!level.inter) return;
    EXPECT_EQ(level.inter->rank(), level.group);
    std::vector<int> linked;
    for (const auto& group : level.groups) linked.push_back(group[rank / 3]);
    EXPECT_EQ(scope_ranks(*level.inter, rank), linked);
  });
}

// The links of a cartesian level are in the order of the groups, even if the ranks of their members are not.
TEST(Hierarchy, OrdersEveryLinkByGroup) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const std::string key = world->rank() == 0 || world->rank() == 3 ? "outer" : "inner";
    const Level level = split_by_key("ring", world, key);
    EXPECT_EQ(level.groups, (Groups{{0, 3}, {1, 2}}));
    EXPECT_EQ(level.inter->rank(), level.group);
    EXPECT_FALSE(level.in_rank_order());
  });
}

// A key has no meaning outside its group; here "0" and "1" occur on both hosts.
TEST(Hierarchy, SplitsAsDeepAsItHasKeys) {
  run_ranks("inproc", 8, [](const CommunicatorPtr& world) {
    const int rank = world->rank();
    const Hierarchy hierarchy(
        world,
        {{"host", rank < 4 ? "a" : "b"}, {"numa", std::to_string(rank / 2 % 2)}, {"core", std::to_string(rank)}});
    EXPECT_EQ(hierarchy.depth(), 3);
    EXPECT_EQ(hierarchy.level(0).intra, world);
    EXPECT_EQ(hierarchy.level(1).intra->size(), 4);
    EXPECT_EQ(hierarchy.level(2).intra->size(), 2);
    EXPECT_EQ(hierarchy.level(2).groups, (Groups{{0, 1}, {2, 3}}));
    EXPECT_EQ(hierarchy.level(3).intra->size(), 1);
    EXPECT_TRUE(hierarchy.level(2).in_rank_order());
    EXPECT_TRUE(hierarchy.is_cartesian());
    EXPECT_EQ(hierarchy.describe(),
              "world of 8 ranks > host: 2 groups, cartesian > numa: 2 groups, cartesian > core: 2 groups, cartesian");
    EXPECT_THROW(hierarchy.level(4), std::out_of_range);
  });
}

// Ranks 0 to 3 are on an even host, ranks 4 to 6 on an uneven one. All agree that not every level is cartesian.
TEST(Hierarchy, IsCartesianOnlyWhereAllOfItIs) {
  run_ranks("inproc", 7, [](const CommunicatorPtr& world) {
    const int rank = world->rank();
    const std::string half = rank < 2 || rank == 4 ? "0" : "1";
    const Hierarchy hierarchy(world, {{"host", rank < 4 ? "a" : "b"}, {"numa", half}});
    EXPECT_FALSE(hierarchy.is_cartesian());
    EXPECT_EQ(hierarchy.level(2).cartesian(), rank < 4);
  });
}

TEST(Hierarchy, WithoutKeysIsTheWorld) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const Hierarchy hierarchy(world, {});
    EXPECT_EQ(hierarchy.depth(), 0);
    EXPECT_EQ(hierarchy.nodes(), 1);
    EXPECT_TRUE(hierarchy.is_cartesian());
    EXPECT_EQ(hierarchy.level(0).groups, (Groups{{0, 1}}));
  });
}

// The groups already have communicators, which may come from a faster backend.
TEST(Link, TakesExistingGroups) {
  run_ranks("inproc", 5, [](const CommunicatorPtr& world) {
    const auto intra = world->split(world->rank() % 2, world->rank());
    const Level level = link("parity", world, intra);
    EXPECT_EQ(level.intra, intra);
    EXPECT_EQ(level.groups, (Groups{{0, 2, 4}, {1, 3}}));
    EXPECT_EQ(level.inter != nullptr, world->rank() < 2);
  });
}

TEST(Link, RefusesAnotherOrder) {
  std::atomic<int> refused = 0;
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const auto backwards = world->split(0, -world->rank());
    try {
      static_cast<void>(link("backwards", world, backwards));
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("not a group of"), std::string::npos) << error.what();
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace phalanx
