// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/failure.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

namespace phalanx {
namespace {

class FailureTest : public ::testing::Test {
 protected:
  FailureTest() : folder_(::testing::TempDir() + "failure_test") { std::filesystem::create_directories(folder_); }
  ~FailureTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(FailureTest, IsReadAsItWasWritten) {
  write_failure(folder_, {.rank = 12,
                          .host = "node7",
                          .log = "logs/rank12.log",
                          .message = "two\nlines, \"quotes\", \xE2\x9C\x93",
                          .secondary = true,
                          .time = 1700000000.25,
                          .spares_host = true});
  const auto failures = take_failures(folder_);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].rank, 12);
  EXPECT_EQ(failures[0].host, "node7");
  EXPECT_EQ(failures[0].log, "logs/rank12.log");
  EXPECT_EQ(failures[0].message, "two\nlines, \"quotes\", \xE2\x9C\x93");
  EXPECT_TRUE(failures[0].secondary);
  EXPECT_EQ(failures[0].time, 1700000000.25);
  EXPECT_TRUE(failures[0].spares_host);
}

TEST_F(FailureTest, IsTakenOnce) {
  write_failure(folder_, {.rank = 0});
  EXPECT_EQ(take_failures(folder_).size(), 1u);
  EXPECT_TRUE(take_failures(folder_).empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FailureTest, FirstCauseComesFirst) {
  write_failure(folder_, {.rank = 0, .secondary = true, .time = 1});
  write_failure(folder_, {.rank = 1, .time = 3});
  write_failure(folder_, {.rank = 2, .time = 2});
  write_failure(folder_, {.rank = 3, .secondary = true, .time = 0.5});
  std::vector<int> ranks;
  for (const auto& failure : take_failures(folder_)) ranks.push_back(failure.rank);
  EXPECT_EQ(ranks, (std::vector<int>{2, 1, 3, 0}));
}

TEST_F(FailureTest, MessageMayHaveInvalidUtf8) {
  write_failure(folder_, {.rank = 0, .message = "a\xFF!"});
  EXPECT_EQ(take_failures(folder_).at(0).message, "a\xEF\xBF\xBD!");
}

TEST_F(FailureTest, AnUnreadableReportIsStillAFailureOfItsRank) {
  std::ofstream(folder_ + "/rank3.failure") << "{";
  const auto failures = take_failures(folder_);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].rank, 3);
  EXPECT_NE(failures[0].message.find("cannot be read"), std::string::npos);
}

TEST_F(FailureTest, AReportWithANumberThatIsNoneOfARankCannotBeRead) {
  write_failure(folder_, {.rank = 3, .message = "loss is not finite"});
  std::ifstream in(folder_ + "/rank3.failure");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find("\"rank\": 3"), 9, "\"rank\": 1e300");
  std::ofstream(folder_ + "/rank3.failure") << text;
  const auto failures = take_failures(folder_);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].rank, 3);
  EXPECT_NE(failures[0].message.find("cannot be read"), std::string::npos);
}

TEST_F(FailureTest, ReadingDoesNotRemoveReports) {
  write_failure(folder_, {.rank = 3, .message = "loss is not finite"});
  EXPECT_EQ(read_failures(folder_).at(0).message, "loss is not finite");
  EXPECT_EQ(read_failures(folder_).size(), 1u);
  EXPECT_EQ(take_failures(folder_).size(), 1u);
}

TEST_F(FailureTest, ReportsTakenByAnotherProcessAreSkipped) {
  constexpr int kFailures = 500, kTakers = 4;
  for (int rank = 0; rank < kFailures; ++rank) write_failure(folder_, {.rank = rank, .message = "as left"});
  std::array<std::vector<Failure>, kTakers> taken;
  {
    std::vector<std::jthread> takers;
    for (auto& failures : taken) takers.emplace_back([&] { failures = take_failures(folder_); });
  }
  std::set<int> ranks;
  for (const auto& failures : taken) {
    for (const auto& failure : failures) {
      EXPECT_EQ(failure.message, "as left");
      ranks.insert(failure.rank);
    }
  }
  EXPECT_EQ(ranks.size(), static_cast<std::size_t>(kFailures));
}

TEST_F(FailureTest, OtherFilesStay) {
  std::ofstream(folder_ + "/rank3.log") << "text";
  EXPECT_TRUE(take_failures(folder_).empty());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/rank3.log"));
}

TEST(Failure, AMissingFolderHasNone) { EXPECT_TRUE(take_failures("/no/such/folder").empty()); }

TEST(Failure, IsPrintedIfItCannotBeWritten) {
  ::testing::internal::CaptureStderr();
  write_failure("/no/such/folder", {.rank = 1, .message = "disk full"});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("rank 1: disk full"), std::string::npos) << text;
}

TEST_F(FailureTest, IsWrittenToTheLaunchersFolderIfTheDiskIsFull) {
  ::setenv(kSpareFailureFolder, folder_.c_str(), 1);
  write_failure("/no/such/folder", {.rank = 1, .message = "disk full"});
  ::unsetenv(kSpareFailureFolder);
  const auto failures = take_failures("/no/such/folder", folder_);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].message, "disk full");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FailureTest, IsForgottenIfTheJobGoesOnWithoutTheRank) {
  write_failure(folder_, {.rank = 2, .message = "disk full"});
  write_failure(folder_, {.rank = 0, .message = "out of memory"});
  mark_lost(folder_, {.rank = 2, .message = "disk full"});
  EXPECT_FALSE(training_has_begun(folder_));
  note_training(folder_);
  EXPECT_TRUE(training_has_begun(folder_));
  EXPECT_EQ(lost_ranks(folder_), std::vector<int>{2});
  ASSERT_EQ(lost_notes(folder_).size(), 1u);
  EXPECT_EQ(lost_notes(folder_)[0].message, "disk full");
  const auto failures = take_failures(folder_);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].rank, 0);
  EXPECT_EQ(take_lost_ranks(folder_), std::vector<int>{2});
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FailureTest, IsReportedByTheFirstThatAsks) {
  EXPECT_TRUE(claim_report(folder_));
  EXPECT_FALSE(claim_report(folder_));
  write_failure(folder_, {.rank = 1});
  remove_failures(folder_);
  EXPECT_TRUE(take_failures(folder_).empty());
  EXPECT_TRUE(claim_report(folder_));
  EXPECT_TRUE(claim_report("/no/such/folder"));
}

}  // namespace
}  // namespace phalanx
