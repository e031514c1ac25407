// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/share.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> divided(const std::vector<std::string>& hosts, int ranks) {
  std::vector<std::string> lines;
  for (const auto& share : divide_among_hosts(hosts, ranks)) {
    lines.push_back(share.host + " " + std::to_string(share.first_rank) + "+" + std::to_string(share.ranks) + " of " +
                    std::to_string(share.slots));
  }
  return lines;
}

TEST(HostShares, AreEvenWithoutSlots) {
  EXPECT_THAT(divided({"a", "b"}, 4), ElementsAre("a 0+2 of 2", "b 2+2 of 2"));
  EXPECT_THAT(divided({"a", "b", "c"}, 5), ElementsAre("a 0+2 of 2", "b 2+2 of 2", "c 4+1 of 2"));
  EXPECT_THAT(divided({"a", "b", "c"}, 2), ElementsAre("a 0+1 of 1", "b 1+1 of 1", "c 2+0 of 1"));
}

TEST(HostShares, FillSlotsInOrder) {
  EXPECT_THAT(divided({"a:3", "b:3"}, 4), ElementsAre("a 0+3 of 3", "b 3+1 of 3"));
  EXPECT_THAT(divided({"a:2", "b"}, 3), ElementsAre("a 0+2 of 2", "b 2+1 of 1"));
  EXPECT_THAT(divided({"a:2", "b:2"}, 2), ElementsAre("a 0+2 of 2", "b 2+0 of 2"));
  EXPECT_THAT([] { divided({"a:2", "b:1"}, 4); },
              ThrowsMessage<ConfigError>(HasSubstr("launch.ranks: 4 ranks are more than the 3 slots of launch.hosts")));
}

TEST(HostShares, AreRefusedIfAHostIsNamedTwice) {
  EXPECT_THAT([] { divided({"a:1", "b:1", "a:1"}, 3); },
              ThrowsMessage<ConfigError>(HasSubstr("launch.hosts: a is named twice")));
}

TEST(AgentOrders, AreTakenOnce) {
  EXPECT_FALSE(take_agent_order());
  const AgentOrder order{.first_rank = 2, .ranks = 3, .ranks_of_job = 8, .rendezvous = "file:///runs/my run/store"};
  ::setenv(kAgentOrder, to_text(order).c_str(), 1);
  const auto taken = take_agent_order();
  ASSERT_TRUE(taken);
  EXPECT_EQ(to_text(*taken), to_text(order));
  EXPECT_EQ(taken->rendezvous, order.rendezvous);
  EXPECT_FALSE(take_agent_order()) << "a child would take itself for an agent";
  for (const std::string wrong : {"2 3", "-1 3 8 file:///store", "2 -3 8 file:///store", "2 3 0 file:///store"}) {
    ::setenv(kAgentOrder, wrong.c_str(), 1);
    EXPECT_THAT([] { take_agent_order(); },
                ThrowsMessage<ConfigError>(HasSubstr("PHALANX_AGENT is \"" + wrong + "\"")));
  }
}

}  // namespace
}  // namespace phalanx
