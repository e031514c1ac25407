// SPDX-License-Identifier: Apache-2.0
#include "launch/run_rank.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/failure.h"

namespace phalanx {
namespace {

struct RankOutcome {
  int status;
  std::vector<Failure> failures;
};

RankOutcome run_body(const std::function<int()>& body) {
  const std::string folder = ::testing::TempDir();
  const int status = run_rank(5, folder, "the.log", body);
  return {status, take_failures(folder)};
}

TEST(RunRank, GivesTheBodysResult) {
  const RankOutcome outcome = run_body([] { return 42; });
  EXPECT_EQ(outcome.status, 42);
  EXPECT_TRUE(outcome.failures.empty());
}

TEST(RunRank, ReportsAnException) {
  const RankOutcome outcome = run_body([]() -> int { throw DataError("file is short"); });
  EXPECT_EQ(outcome.status, kFailed);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].rank, 5);
  EXPECT_EQ(outcome.failures[0].log, "the.log");
  EXPECT_EQ(outcome.failures[0].message, "file is short");
  EXPECT_FALSE(outcome.failures[0].secondary);
  EXPECT_NEAR(outcome.failures[0].time, failure_time(), 10);
}

TEST(RunRank, AConfigErrorIsAUsageError) {
  EXPECT_EQ(run_body([]() -> int { throw ConfigError("no such key"); }).status, kUsage);
}

TEST(RunRank, EchoOfAnotherRanksFailureIsSecondary) {
  const auto lost = run_body([]() -> int { throw CommError(CommError::Kind::kPeerLost, "rank 1 is gone"); });
  EXPECT_EQ(lost.status, kFailed);
  EXPECT_TRUE(lost.failures.at(0).secondary);
  const auto mismatch = run_body([]() -> int { throw CommError(CommError::Kind::kMismatch, "not the same"); });
  EXPECT_FALSE(mismatch.failures.at(0).secondary);
}

TEST(RunRank, AnythingThrownIsAFailure) {
  EXPECT_EQ(run_body([]() -> int { throw 1; }).failures.size(), 1u);
}

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
