// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/core_shares.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Two nodes of two cores of two hardware threads, numbered as on Intel processors: first one thread of each core, then
// the other thread.
class CoreShares : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(system_);
    for (int thread = 0; thread < 8; ++thread) {
      const int core = thread % 4;
      const std::string folder = system_ + "/devices/system/cpu/cpu" + std::to_string(thread);
      fs::create_directories(folder + "/topology");
      fs::create_directories(folder + "/node" + std::to_string(core / 2));
      std::ofstream(folder + "/topology/thread_siblings_list") << core << "," << core + 4 << "\n";
    }
    std::iota(all_.begin(), all_.end(), 0);
  }

  const std::string system_ = ::testing::TempDir() + "two_nodes";
  std::vector<int> all_ = std::vector<int>(8);
};

TEST_F(CoreShares, CoresKeepTheirHardwareThreadsTogether) {
  const auto cores = physical_cores(all_, system_);
  ASSERT_EQ(cores.size(), 4u);
  EXPECT_THAT(cores[1].threads, ElementsAre(1, 5));
  EXPECT_EQ(cores[1].node, 0);
  EXPECT_THAT(cores[2].threads, ElementsAre(2, 6));
  EXPECT_EQ(cores[2].node, 1);
}

TEST_F(CoreShares, RanksShareNoCore) {
  const auto cores = physical_cores(all_, system_);
  EXPECT_THAT(own_cores(cores, 0, 2), ElementsAre(0, 4, 1, 5));
  EXPECT_THAT(own_cores(cores, 1, 2), ElementsAre(2, 6, 3, 7));
  EXPECT_THAT(own_cores(cores, 0, 3), ElementsAre(0, 4, 1, 5)) << "the first rank gets one core more";
  EXPECT_THAT(own_cores(cores, 2, 3), ElementsAre(3, 7));
  EXPECT_THAT(own_cores(cores, 3, 4), ElementsAre(3, 7));
  EXPECT_THAT(own_cores(cores, 0, 1), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
}

TEST_F(CoreShares, MoreRanksThanCoresShareNoHardwareThread) {
  const auto cores = physical_cores(all_, system_);
  EXPECT_THAT(own_cores(cores, 1, 8), ElementsAre(4));
  EXPECT_THAT(own_cores(cores, 0, 5), ElementsAre(0, 4));
  EXPECT_THAT(own_cores(cores, 4, 5), ElementsAre(7));
}

TEST_F(CoreShares, MoreRanksThanHardwareThreadsAreAnError) {
  const auto cores = physical_cores(all_, system_);
  EXPECT_THAT([&] { own_cores(cores, 0, 9); }, ThrowsMessage<ConfigError>(HasSubstr("9 ranks")));
}

TEST_F(CoreShares, NeighboursAreOnOneNode) {
  const auto cores = physical_cores(all_, system_);
  EXPECT_THAT(own_nodes(cores, 0, 3), ElementsAre(0, 4, 1, 5));
  EXPECT_THAT(own_nodes(cores, 1, 3), ElementsAre(0, 4, 1, 5));
  EXPECT_THAT(own_nodes(cores, 2, 3), ElementsAre(2, 6, 3, 7));
  EXPECT_THAT(own_nodes(cores, 1, 2), ElementsAre(2, 6, 3, 7));
  EXPECT_THAT(own_nodes(cores, 0, 1), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(own_nodes(cores, 99, 100), ElementsAre(2, 6, 3, 7));
}

TEST(DescribeCores, NamesRanges) {
  EXPECT_EQ(describe_cores({0, 4, 1, 5, 7}), "0-1,4-5,7");
  EXPECT_EQ(describe_cores({3}), "3");
  EXPECT_EQ(describe_cores({2, 0, 1}), "0-2");
}

// A container, taskset(1) or a batch system has left only some hardware threads to this process.
TEST_F(CoreShares, ForbiddenCoresBelongToNoRank) {
  const auto cores = physical_cores({1, 3, 5}, system_);
  EXPECT_THAT(own_cores(cores, 0, 2), ElementsAre(1, 5));
  EXPECT_THAT(own_cores(cores, 1, 2), ElementsAre(3));
  EXPECT_THAT(own_nodes(cores, 1, 2), ElementsAre(3));
}

TEST_F(CoreShares, WithoutTopologyEachHardwareThreadIsACore) {
  const auto cores = physical_cores({4, 7}, system_ + "/not there");
  ASSERT_EQ(cores.size(), 2u);
  EXPECT_THAT(own_cores(cores, 1, 2), ElementsAre(7));
  EXPECT_THAT(own_nodes(cores, 1, 2), ElementsAre(4, 7));
}

}  // namespace
}  // namespace phalanx
