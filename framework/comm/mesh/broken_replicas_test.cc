// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/mesh/broken_replicas.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

using Pairs = std::vector<std::pair<int, int>>;  // of stranded ranks and those that their replicas have lost

Pairs stranded(const std::vector<int>& before, const std::vector<int>& left, int ranks_per_replica) {
  Pairs pairs;
  for (const auto& one : stranded_ranks(before, left, ranks_per_replica)) pairs.emplace_back(one.rank, one.lost);
  return pairs;
}

TEST(BrokenReplicas, StrandTheirOtherRanks) {
  EXPECT_EQ(stranded({0, 1, 2, 3}, {0, 1, 3}, 2), (Pairs{{3, 2}}));
  EXPECT_EQ(stranded({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 4, 5, 6, 7}, 4), (Pairs{{1, 0}, {2, 0}}));
  EXPECT_EQ(stranded({0, 1, 2, 3}, {1, 2}, 2), (Pairs{{1, 0}, {2, 3}}));
}

TEST(BrokenReplicas, StrandNobodyIfTheyAreLostAsAWhole) {
  EXPECT_EQ(stranded({0, 1, 2, 3}, {0, 1}, 2), Pairs{});
  EXPECT_EQ(stranded({0, 1, 2}, {0, 2}, 1), Pairs{});
}

// After a loss, the ranks that were left form the replicas in their order, whatever their numbers.
TEST(BrokenReplicas, FollowFromTheOrderOfRanksAndNotFromTheirNumbers) {
  EXPECT_EQ(stranded({0, 1, 4, 5}, {0, 1, 5}, 2), (Pairs{{5, 4}}));
  EXPECT_EQ(stranded({1, 2, 5, 8}, {1, 5, 8}, 2), (Pairs{{1, 2}}));
  EXPECT_EQ(stranded({0, 1, 6, 5}, {0, 1, 6}, 2), (Pairs{{6, 5}}));  // newcomers, of which one was slow
}

TEST(BrokenReplicas, ConsistOfTheRanksAlongAllAxesButData) {
  MeshShape shape;
  shape[Axis::kData] = 5;
  EXPECT_EQ(ranks_per_replica(shape), 1);
  shape[Axis::kPipe] = 3;
  shape[Axis::kTensor] = 2;
  EXPECT_EQ(ranks_per_replica(shape), 6);
}

TEST(BrokenReplicas, NeedWholeReplicasToBeginWith) {
  EXPECT_THROW(stranded_ranks({0, 1, 2}, {0}, 2), std::invalid_argument);
  EXPECT_THROW(stranded_ranks({0, 1}, {0}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
