// SPDX-License-Identifier: Apache-2.0
#include "launch/local/rank_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace phalanx {
namespace {

TEST(RankThreads, HaveTheirOwnRankInfoOnOneHost) {
  std::vector<RankInfo> rank_infos(3);
  run_rank_threads(
      3, [&](const RankInfo& rank_info) { rank_infos.at(static_cast<std::size_t>(rank_info.rank)) = rank_info; });
  for (int rank = 0; rank < 3; ++rank) {
    const RankInfo& rank_info = rank_infos[static_cast<std::size_t>(rank)];
    EXPECT_EQ(rank_info.rank, rank);
    EXPECT_EQ(rank_info.local_rank, rank);
    EXPECT_EQ(rank_info.size, 3);
    EXPECT_TRUE(rank_info.one_host());
  }
}

TEST(RankThreads, RethrowTheErrorOfOneAfterAllHaveEnded) {
  std::atomic<int> ended = 0;
  try {
    run_rank_threads(8, [&](const RankInfo& rank_info) {
      ++ended;
      if (rank_info.rank == 1) throw std::runtime_error("the cause");
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the cause");
  }
  EXPECT_EQ(ended, 8);
}

}  // namespace
}  // namespace phalanx
