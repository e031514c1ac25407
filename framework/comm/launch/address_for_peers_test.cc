// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/address_for_peers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phalanx {
namespace {

const LocalAddress kFourHere{"lo", "127.0.0.1", AF_INET, true}, kSixHere{"lo", "::1", AF_INET6, true};
const LocalAddress kFour{"eth0", "10.0.0.1", AF_INET, false}, kSix{"eth0", "fd00::1", AF_INET6, false};

TEST(ChooseAddress, OnOneHostItIsALoopbackAddressOfTheHost) {
  EXPECT_EQ(choose_address(true, {kFourHere, kFour, kSixHere, kSix}, {}), "127.0.0.1");
  EXPECT_EQ(choose_address(true, {kSixHere, kSix}, {}), "::1") << "a host without IPv4";
  EXPECT_EQ(choose_address(true, {kFour}, {}), "10.0.0.1") << "a host without a loopback";
  EXPECT_EQ(choose_address(true, {}, {}), "");
}

TEST(ChooseAddress, BetweenHostsItIsThatOfTheNameOrElseTheFirstOtherThanLoopback) {
  EXPECT_EQ(choose_address(false, {kFourHere, kFour, kSix}, {"127.0.1.1", "fd00::1"}), "fd00::1");
  EXPECT_EQ(choose_address(false, {kFourHere, kFour, kSix}, {"192.168.0.9"}), "10.0.0.1");
  EXPECT_EQ(choose_address(false, {kSixHere, kSix}, {}), "fd00::1");
  EXPECT_EQ(choose_address(false, {kFourHere, kSixHere}, {}), "");
}

}  // namespace
}  // namespace phalanx
