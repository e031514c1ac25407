// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/report_once.h"

#include <gmock/gmock.h>

#include <string>

#include "launch/failure/failure.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string reported(const std::string& folder, int ranks) {
  ::testing::internal::CaptureStderr();
  report_once(folder, ranks);
  return ::testing::internal::GetCapturedStderr();
}

TEST(ReportOnce, TellsTheCauseAndHowManyRanksEndedWithIt) {
  const testing::Scratch scratch;
  write_failure(scratch.folder(), {.rank = 0, .message = "rank 1 is gone", .secondary = true, .time = 1});
  write_failure(scratch.folder(), {.rank = 1, .message = "out of paper", .time = 2});
  const std::string text = reported(scratch.folder(), 2);
  EXPECT_THAT(text, HasSubstr("Rank 1 of 2"));
  EXPECT_THAT(text, HasSubstr("out of paper"));
  EXPECT_THAT(text, HasSubstr("1 other rank ended with it."));
  EXPECT_THAT(text, Not(HasSubstr("is gone")));
  EXPECT_THAT(read_failures(scratch.folder()), IsEmpty());
}

TEST(ReportOnce, TheSecondRankIsSilent) {
  const testing::Scratch scratch;
  write_failure(scratch.folder(), {.rank = 0, .message = "out of paper", .time = 1});
  EXPECT_THAT(reported(scratch.folder(), 2), HasSubstr("out of paper"));
  write_failure(scratch.folder(), {.rank = 1, .message = "out of ink", .time = 2});
  EXPECT_EQ(reported(scratch.folder(), 2), "");
  EXPECT_THAT(read_failures(scratch.folder()), IsEmpty());
}

TEST(ReportOnce, AConsequenceIsReportedIfNoCauseIsLeft) {
  const testing::Scratch scratch;
  write_failure(scratch.folder(), {.rank = 0, .message = "rank 1 is gone", .secondary = true, .time = 1});
  EXPECT_THAT(reported(scratch.folder(), 2), HasSubstr("rank 1 is gone"));
}

}  // namespace
}  // namespace phalanx
