// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/host_ranks.h"

#include <gmock/gmock.h>

#include <string>

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Host a has ranks 0 and 1 in two slots, b has rank 2 in two slots, and c has a slot to spare.
class RanksOfHosts : public ::testing::Test {
 protected:
  std::string room_for(int number) const {
    const auto place = ranks_.room_for(number);
    return place ? ranks_.name(place->host) + std::to_string(place->slot) : "";
  }

  HostRanks ranks_{{{.host = "a", .first_rank = 0, .ranks = 2, .slots = 2},
                    {.host = "b", .first_rank = 2, .ranks = 1, .slots = 2},
                    {.host = "c", .first_rank = 3, .ranks = 0, .slots = 1}}};
};

TEST_F(RanksOfHosts, AreReplacedInTheirOwnSlot) {
  ranks_.end(0);
  ranks_.end(1);
  EXPECT_EQ(room_for(1), "a1");
  ranks_.start(3, {.host = 0, .slot = 1});
  EXPECT_EQ(room_for(1), "a0") << "another slot of the same host";
  EXPECT_THAT(ranks_.running(0), ElementsAre(3));
  EXPECT_THAT(ranks_.all(0), ElementsAre(0, 1, 3));
}

TEST_F(RanksOfHosts, OfALostHostGetTheFreeSlotsOfOthers) {
  EXPECT_EQ(ranks_.free_slots(), 2);
  ranks_.lose(0);
  EXPECT_EQ(ranks_.free_slots(), 2) << "those of a lost host are not free";
  EXPECT_THAT(ranks_.running(0), IsEmpty());
  EXPECT_EQ(room_for(0), "b1");
  ranks_.start(3, *ranks_.room_for(0));
  EXPECT_EQ(room_for(1), "c0");
  ranks_.start(4, *ranks_.room_for(1));
  EXPECT_EQ(room_for(1), "");
  EXPECT_EQ(ranks_.free_slots(), 0);
  ranks_.end(3);
  EXPECT_EQ(ranks_.free_slots(), 1);
  EXPECT_EQ(room_for(3), "b1");
  ranks_.start(5, *ranks_.room_for(3));
  ranks_.lose(2);
  EXPECT_EQ(room_for(4), "");
}

TEST_F(RanksOfHosts, ShareCoresAsAtTheBeginning) {
  EXPECT_EQ(ranks_.shares_of_cores({.host = 1, .slot = 0}), 1);
  EXPECT_EQ(ranks_.shares_of_cores({.host = 1, .slot = 1}), 2);
  EXPECT_EQ(ranks_.shares_of_cores({.host = 2, .slot = 0}), 1);
}

TEST_F(RanksOfHosts, GetTheSlotsOfHostsThatAreAdded) {
  ranks_.lose(0);
  ranks_.lose(1);
  ranks_.lose(2);
  EXPECT_EQ(ranks_.add("d", 1), 3U);
  EXPECT_EQ(room_for(2), "d0");
  EXPECT_FALSE(ranks_.is_running(2));
  EXPECT_EQ(ranks_.running(), 0);
  ASSERT_TRUE(ranks_.room_on(3));
  ranks_.start(4, *ranks_.room_on(3));
  EXPECT_EQ(ranks_.running(), 1);
  EXPECT_FALSE(ranks_.room_on(3));
}

}  // namespace
}  // namespace phalanx
