// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

namespace phalanx::shared_memory {
namespace {

TEST(Claim, GivesEachByteToOneSide) {
  constexpr std::uint64_t kMessage = 3, kBytes = 1'000'003;
  const auto channel = std::make_unique<Channel>();
  channel->claimed = Channel::Claim::pack(kMessage, 16);
  std::vector<int> owners(kBytes);  // by byte; the first 16 were claimed before
  std::vector<std::jthread> sides;
  for (const std::uint64_t most : {7, 111}) {
    sides.emplace_back([&, most] {
      for (;;) {
        const std::uint64_t begin = claim(*channel, kMessage, kBytes, most);
        if (begin == kBytes) return;
        for (std::uint64_t i = begin; i < std::min(begin + most, kBytes); ++i) ++owners[i];
      }
    });
  }
  sides.clear();
  for (std::uint64_t i = 0; i < kBytes; ++i) ASSERT_EQ(owners[i], i < 16 ? 0 : 1) << "byte " << i;
}

TEST(Claim, OfAnotherMessageGivesNothing) {
  const auto channel = std::make_unique<Channel>();
  channel->claimed = Channel::Claim::pack(8, 16);
  EXPECT_EQ(claim(*channel, 7, 1000, 100), 1000u);
  EXPECT_EQ(claim(*channel, 8, 1000, 100), 16u);
  EXPECT_EQ(claim(*channel, 8, 1000, 2000), 116u);
  EXPECT_EQ(claim(*channel, 8, 1000, 100), 1000u) << "nothing is left";
}

// The number of the message is kept modulo 2^20, which is enough to tell a message from the one before.
TEST(Claim, NumbersMayWrapAround) {
  const auto channel = std::make_unique<Channel>();
  for (const std::uint64_t message : {(1ull << 20) - 1, 1ull << 20, (1ull << 20) + 1}) {
    channel->claimed = Channel::Claim::pack(message, 0);
    EXPECT_EQ(claim(*channel, message - 1, 10, 10), 10u) << message;
    EXPECT_EQ(claim(*channel, message, 10, 10), 0u) << message;
  }
}

}  // namespace
}  // namespace phalanx::shared_memory
