// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/regions.h"

#include <gtest/gtest.h>

#include <array>

namespace phalanx::shared_memory {
namespace {

class RegionsTest : public ::testing::Test {
 protected:
  std::shared_ptr<void> add(std::uint32_t id, std::byte* base, int rank) {
    return Regions::add(regions_, {id, base, kStride}, rank,
                        std::shared_ptr<void>(base, [this](void*) { ++unmapped_; }));
  }

  static constexpr std::size_t kStride = 128;
  std::array<std::byte, 4 * kStride> memory_{};
  std::shared_ptr<Regions> regions_ = std::make_shared<Regions>();
  int unmapped_ = 0;
};

TEST_F(RegionsTest, LocatesRunsInsideThisRanksPart) {
  const auto part = add(7, memory_.data(), 1);
  EXPECT_EQ(part.get(), memory_.data() + kStride);
  EXPECT_EQ(regions_->locate(memory_.data() + kStride + 8, kStride - 8).region, 7u);
  EXPECT_EQ(regions_->locate(memory_.data() + kStride + 8, kStride - 8).offset, 8u);
}

TEST_F(RegionsTest, RefusesWhatLiesPartlyOutside) {
  const auto part = add(7, memory_.data(), 1);
  EXPECT_EQ(regions_->locate(memory_.data() + kStride + 8, kStride).region, 0u);
  EXPECT_EQ(regions_->locate(memory_.data(), 8).region, 0u) << "rank 0's part is not this rank's";
  EXPECT_EQ(regions_->locate(memory_.data() + 2 * kStride, 8).region, 0u);
}

// The addresses of a freed region may be reused for other memory.
TEST_F(RegionsTest, ForgetsARegionWithItsLastHolder) {
  auto part = add(7, memory_.data(), 0);
  auto copy = part;
  part.reset();
  EXPECT_EQ(regions_->locate(memory_.data(), 8).region, 7u);
  copy.reset();
  EXPECT_EQ(regions_->locate(memory_.data(), 8).region, 0u);
  EXPECT_EQ(regions_->find(7).base, nullptr);
  EXPECT_EQ(unmapped_, 1);
}

TEST_F(RegionsTest, KeepsMemoryLongerThanItself) {
  auto part = add(7, memory_.data(), 0);
  regions_.reset();
  EXPECT_EQ(unmapped_, 0);
  part.reset();
  EXPECT_EQ(unmapped_, 1);
}

}  // namespace
}  // namespace phalanx::shared_memory
