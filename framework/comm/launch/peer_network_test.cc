// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/peer_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "framework/comm/launch/locality.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;

const LocalAddress kInward{"lo", "127.0.0.1", AF_INET, true, 8};
const LocalAddress kOutward{"eth0", "10.0.0.2", AF_INET, false, 24};
const LocalAddress kBridge{"docker0", "172.17.0.1", AF_INET, false, 16};

// Returns the network of a host that sends from 192.168.7.2 to hosts in 192.168, and from 10.0.0.2 to all others.
HostNetwork two_networks() {
  return {.addresses = {kInward, kBridge, {"ib0", "192.168.7.2", AF_INET, false, 16}, kOutward},
          .named = {},
          .source_towards = [](const std::string& peer) -> std::string {
            return peer.starts_with("192.168.") ? "192.168.7.2" : peer.starts_with("127.") ? peer : "10.0.0.2";
          }};
}

std::string towards(const HostEntry& other, const std::string& first_host = "", const std::string& interface = "") {
  const auto own = address_towards(other, first_host, interface, two_networks());
  return own ? own->text : "none";
}

TEST(HostEntry, SurvivesItsText) {
  const HostEntry entry{.key = "node1 boot net:[1]", .addresses = {"10.0.0.1", "fd00::1"}};
  const HostEntry read = HostEntry::from_text(entry.to_text());
  EXPECT_EQ(read.key, entry.key);
  EXPECT_EQ(read.addresses, entry.addresses);
  EXPECT_EQ(HostEntry::from_text("").key, "");
}

TEST(DescribeHost, ListsWhatOthersMayReach) {
  EXPECT_THAT(describe_host("", two_networks()).addresses, ElementsAre("192.168.7.2", "10.0.0.2", "172.17.0.1"));
  EXPECT_THAT(describe_host("eth0", two_networks()).addresses, ElementsAre("10.0.0.2"));
  const HostNetwork alone{.addresses = {kInward}, .named = {}, .source_towards = {}};
  EXPECT_THAT(describe_host("", alone).addresses, ElementsAre("127.0.0.1"));
}

TEST(AddressTowards, FollowsTheRouteToRankZero) {
  EXPECT_EQ(towards({.key = "node1", .addresses = {"192.168.7.1"}}, "node1"), "10.0.0.2") << "where it was reached";
  EXPECT_EQ(towards({.key = "node1", .addresses = {"192.168.7.1"}}), "192.168.7.2");
  EXPECT_EQ(towards({.key = "node1", .addresses = {"192.168.7.1"}}, "", "eth0"), "10.0.0.2") << "set by the user";
}

TEST(AddressTowards, PrefersAnAddressInANetworkOfThisHost) {
  EXPECT_EQ(towards({.key = "node1", .addresses = {"8.8.8.8", "192.168.7.1"}}), "192.168.7.2");
  EXPECT_EQ(towards({.key = "node1", .addresses = {"172.17.0.1", "192.168.7.1"}}), "192.168.7.2")
      << "every host has this address";
  EXPECT_EQ(towards({.key = "node1", .addresses = {"8.8.8.8"}}), "10.0.0.2") << "through a router";
}

TEST(AddressTowards, IsLoopbackIfThatIsHowRankZeroWasReached) {
  EXPECT_EQ(towards({.key = "host1", .addresses = {"127.0.0.1"}}), "127.0.0.1") << "PHALANX_HOST_KEY only";
}

TEST(AddressTowards, SaysNothingOfTheSameHost) {
  EXPECT_EQ(towards({.key = host_key(), .addresses = {"10.0.0.2"}}, "node1"), "none");
}

}  // namespace
}  // namespace phalanx
