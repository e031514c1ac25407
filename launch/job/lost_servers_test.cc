// SPDX-License-Identifier: Apache-2.0
#include "launch/job/lost_servers.h"

#include <gmock/gmock.h>

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LostParts, RanksThatTrainHaveNoPart) { EXPECT_THAT(lost_parts({0, 1, 2}, {1, 2}, {.first = 2}), IsEmpty()); }

TEST(LostParts, WithoutReplicasTheValuesOfAServerAreLostWithIt) {
  EXPECT_THAT(lost_parts({0, 1, 2, 3}, {0, 1, 3}, {.first = 2}),
              AllOf(HasSubstr("Rank 2, a parameter server, is lost"), HasSubstr("set roles.replicas: 2")));
}

TEST(LostParts, AReplicaHasTheSamePart) {
  EXPECT_THAT(lost_parts({0, 2, 3}, {0, 3}, {.first = 2, .replicas = 2}), IsEmpty());
  EXPECT_THAT(lost_parts({0, 2, 3}, {0, 2}, {.first = 2, .replicas = 2}), IsEmpty());
}

TEST(LostParts, ServersThatAreNotNeighboursHaveDifferentParts) {
  const ServingRanks serving{.first = 1, .replicas = 2};
  EXPECT_THAT(lost_parts({0, 1, 2, 3, 4}, {0, 2, 4}, serving), IsEmpty());
  EXPECT_THAT(lost_parts({0, 1, 2, 3, 4}, {0, 1, 4}, serving), HasSubstr("Ranks 2 and 3, parameter servers, are lost"));
  EXPECT_THAT(lost_parts({0, 1, 2, 3, 4}, {0, 2, 3}, serving), HasSubstr("Ranks 4 and 1, "));
}

TEST(LostParts, TheLastServerHasTheOnlyCopy) {
  EXPECT_THAT(lost_parts({0, 1, 3}, {0, 1}, {.first = 2, .replicas = 2}),
              AllOf(HasSubstr("Rank 3, "), HasSubstr("set launch.restarts")));
}

TEST(ServingRanks, AreCountedAmongThoseThatAreLeft) {
  EXPECT_EQ(ServingRanks({.first = 2}).count({0, 2, 3}), 2);
  EXPECT_EQ(ServingRanks({.first = 3}).count({0, 1, 2}), 0);
}

}  // namespace
}  // namespace phalanx
