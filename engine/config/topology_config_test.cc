// SPDX-License-Identifier: Apache-2.0
#include "engine/config/topology_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "engine/testing/run.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/launch/locality.h"

namespace phalanx {
namespace {

using testing::complaint;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

std::string topology_complaint(const std::string& topology) {
  return complaint("framework: {topology: " + topology + "}");
}

TEST(Topology, AcceptsKnownLevelsAndKeys) {
  EXPECT_EQ(topology_complaint("{}"), "");
  EXPECT_EQ(topology_complaint("{levels: [host, numa]}"), "");
  EXPECT_EQ(topology_complaint("{levels: [rack, host, pair], keys: {rack: {hosts: [\"a,b\", c]}, pair: {ranks: 2}}}"),
            "");
  EXPECT_EQ(topology_complaint("{keys: {switch: {variable: SWITCH}}}"), "") << "a key that no level uses";
}

TEST(Topology, RefusesLevelsThatAreUnknownOrRepeated) {
  EXPECT_EQ(
      topology_complaint("{levels: [rack]}"),
      "config: framework.topology.levels[0]: \"rack\" is neither host nor numa nor one of framework.topology.keys");
  EXPECT_THAT(topology_complaint("{levels: [hots]}"), EndsWith("(did you mean \"host\"?)"));
  EXPECT_EQ(topology_complaint("{levels: [host, numa, host]}"),
            "config: framework.topology.levels[2]: host is listed twice");
}

TEST(Topology, RefusesKeysWithoutOneMeaning) {
  const std::string expected = "config: framework.topology.keys.pair: needs exactly one of variable, hosts and ranks";
  EXPECT_EQ(topology_complaint("{keys: {pair: {}}}"), expected);
  EXPECT_EQ(topology_complaint("{keys: {pair: {ranks: 2, variable: A}}}"), expected);
  EXPECT_THAT(topology_complaint("{keys: {numa: {ranks: 2}}}"), HasSubstr("this name has a meaning of its own"));
}

TEST(LevelKeys, AreInTheOrderOfTheLevels) {
  ::setenv("TOPOLOGY_TEST_RACK", "r7", 1);
  TopologyConfig topology{.levels = {"rack", "host", "row", "pair"}, .keys = {}};
  topology.keys["rack"].variable = "TOPOLOGY_TEST_RACK";
  topology.keys["row"].hosts = {"elsewhere", "somewhere, " + host_name()};
  topology.keys["pair"].ranks = 2;
  EXPECT_THAT(level_keys(topology, 5),
              ElementsAre(Key{"rack", "r7"}, Key{"host", host_key()}, Key{"row", "1"}, Key{"pair", "2"}));
  EXPECT_THAT(level_keys({}, 5), IsEmpty());
}

TEST(LevelKeys, SayWhyARankHasNone) {
  ::unsetenv("TOPOLOGY_TEST_UNSET");
  TopologyConfig topology{.levels = {"rack"}, .keys = {}};
  topology.keys["rack"].variable = "TOPOLOGY_TEST_UNSET";
  EXPECT_THAT([&] { level_keys(topology, 3); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("framework.topology.keys.rack.variable: TOPOLOGY_TEST_UNSET is not set on rank 3")));
  topology.keys["rack"] = {.variable = "", .hosts = {"elsewhere"}};
  EXPECT_THAT([&] { level_keys(topology, 0); },
              ThrowsMessage<ConfigError>(HasSubstr("framework.topology.keys.rack.hosts: no group has this host, ")));
}

}  // namespace
}  // namespace phalanx
