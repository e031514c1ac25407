// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/address_for_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const LocalAddress kFourHere{"lo", "127.0.0.1", AF_INET, true, 8}, kSixHere{"lo", "::1", AF_INET6, true, 128};
const LocalAddress kFour{"eth0", "10.0.0.1", AF_INET, false, 24}, kSix{"eth0", "fd00::1", AF_INET6, false, 64};
const LocalAddress kOther{"ib0", "192.168.7.1", AF_INET, false, 16},
    kDocker{"docker0", "172.17.0.1", AF_INET, false, 16};

HostNetwork network(std::vector<LocalAddress> addresses, std::vector<std::string> named = {},
                    std::map<std::string, std::string> routes = {}) {
  return {.addresses = std::move(addresses), .named = std::move(named), .source_towards = [routes](const auto& peer) {
            const auto found = routes.find(peer);
            return found == routes.end() ? std::string() : found->second;
          }};
}

std::string on_one_host(const std::vector<LocalAddress>& addresses) {
  return choose_address({.one_host = true}, network(addresses)).text;
}

TEST(ChooseAddress, OnOneHostItIsALoopbackAddressOfTheHost) {
  EXPECT_EQ(on_one_host({kFourHere, kFour, kSixHere, kSix}), "127.0.0.1");
  EXPECT_EQ(on_one_host({kSixHere, kSix}), "::1") << "a host without IPv4";
  EXPECT_EQ(on_one_host({kFour}), "10.0.0.1") << "a host without a loopback";
  EXPECT_THAT([] { on_one_host({}); }, ThrowsMessage<ConfigError>(HasSubstr("ip link set lo up")));
}

TEST(ChooseAddress, BetweenHostsItIsThatOfTheRouteToThePeer) {
  const auto host = network({kFourHere, kFour, kOther}, {"10.0.0.1"}, {{"ph0", "192.168.7.1"}});
  const OwnAddress chosen = choose_address({.peer = "ph0"}, host);
  EXPECT_EQ(chosen.describe(), "192.168.7.1 of ib0, the route to ph0");
  EXPECT_EQ(choose_address({.peer = "unknown"}, host).text, "10.0.0.1") << "there is no route";
}

TEST(ChooseAddress, WithoutAPeerItIsThatOfTheNameOrElseTheFirstOtherThanLoopback) {
  const auto chosen = [](const HostNetwork& host) { return choose_address({}, host).text; };
  EXPECT_EQ(chosen(network({kFourHere, kFour, kSix}, {"127.0.1.1", "fd00::1"})), "fd00::1");
  EXPECT_EQ(chosen(network({kFourHere, kFour, kSix}, {"192.168.0.9"})), "10.0.0.1");
  EXPECT_EQ(chosen(network({kSixHere, kSix})), "fd00::1");
  EXPECT_EQ(chosen(network({kFourHere, kDocker, kOther})), "192.168.7.1") << "bridges for containers come last";
  EXPECT_EQ(chosen(network({kFourHere, kDocker})), "172.17.0.1");
  EXPECT_THAT([&] { chosen(network({kFourHere, kSixHere})); },
              ThrowsMessage<ConfigError>(HasSubstr("lo (127.0.0.1, ::1)")));
}

TEST(ChooseAddress, TheUserMaySetTheInterface) {
  const auto host = network({kFourHere, kFour, kOther, kSix}, {"10.0.0.1"}, {{"ph0", "10.0.0.1"}});
  const auto chosen = [&](const std::string& interface) {
    return choose_address({.interface = interface, .peer = "ph0"}, host).text;
  };
  EXPECT_EQ(chosen("ib0"), "192.168.7.1");
  EXPECT_EQ(chosen("eth7,ib0"), "192.168.7.1") << "the first that the host has";
  EXPECT_EQ(chosen("fd00::1"), "fd00::1");
  EXPECT_EQ(chosen("192.168.0.0/16"), "192.168.7.1");
  EXPECT_EQ(chosen("fd00::/64"), "fd00::1");
  for (const std::string wrong : {"eth7", "10.1.0.0/16", "10.0.0.0/x", "10.0.0.0/"}) {
    EXPECT_THAT([&] { chosen(wrong); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("no network interface \"" + wrong + "\""),
                                                 HasSubstr("eth0 (10.0.0.1, fd00::1), ib0 (192.168.7.1)"),
                                                 HasSubstr("framework.interface"))));
  }
}

TEST(WantedInterface, TheConfigPrecedesTheVariables) {
  ::unsetenv("PHALANX_INTERFACE");
  ::unsetenv("GLOO_SOCKET_IFNAME");
  EXPECT_EQ(wanted_interface(""), "");
  ::setenv("GLOO_SOCKET_IFNAME", "eth1", 1);
  EXPECT_EQ(wanted_interface(""), "eth1");
  ::setenv("PHALANX_INTERFACE", "eth2", 1);
  EXPECT_EQ(wanted_interface(""), "eth2");
  EXPECT_EQ(wanted_interface("eth3"), "eth3");
  ::unsetenv("PHALANX_INTERFACE");
  ::unsetenv("GLOO_SOCKET_IFNAME");
}

TEST(InSameNetwork, ComparesTheFirstBits) {
  EXPECT_TRUE(in_same_network("10.0.0.1", "10.0.0.200", 24));
  EXPECT_FALSE(in_same_network("10.0.0.1", "10.0.1.1", 24));
  EXPECT_TRUE(in_same_network("10.0.0.1", "10.0.1.1", 23));
  EXPECT_TRUE(in_same_network("fd00::1", "fd00::2:1", 64));
  EXPECT_FALSE(in_same_network("fd00::1", "fd01::1", 16));
  EXPECT_TRUE(in_same_network("10.0.0.1", "10.0.0.1", 99)) << "more bits than there are";
  EXPECT_FALSE(in_same_network("10.0.0.1", "fd00::1", 0)) << "of different families";
  EXPECT_FALSE(in_same_network("ph0", "ph0", 0)) << "a name is no address";
}

TEST(WithPort, PutsBracketsAroundIpv6) {
  EXPECT_EQ(with_port("ph0", 80), "ph0:80");
  EXPECT_EQ(with_port("::1", 80), "[::1]:80");
  EXPECT_EQ(with_port("[::1]", 80), "[::1]:80");
}

TEST(ThisNetwork, KnowsItsLoopback) {
  const HostNetwork here = this_network();
  const auto* loopback = here.find("127.0.0.1");
  if (loopback == nullptr) GTEST_SKIP() << "no IPv4 here";
  EXPECT_TRUE(loopback->loopback);
  EXPECT_EQ(loopback->prefix_bits, 8);
  EXPECT_EQ(here.source_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(here.source_towards("no.such.host.invalid"), "");
}

TEST(ThisNetwork, KnowsItsLoopbackOfIpv6) {
  const HostNetwork here = this_network();
  if (here.find("::1") == nullptr) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(here.source_towards("::1"), "::1");
}

}  // namespace
}  // namespace phalanx
