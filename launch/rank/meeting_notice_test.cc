// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/meeting_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

LaunchEnvironment task(int rank) {
  return {.launcher = "mpiexec",
          .rank_info = {rank, 4, rank, 4},
          .rendezvous = "file:///tmp/phalanx-0-7.store?rank=0&world_size=4",
          .job = "7"};
}

TEST(MeetingNotice, TellsWhoIsWaitedForWhileTheRanksHaveNotMet) {
  std::promise<std::string> told;
  const MeetingNotice notice(task(0), Seconds(0.01), [&](std::string_view text) { told.set_value(std::string(text)); });
  EXPECT_THAT(told.get_future().get(), AllOf(HasSubstr("rank 0 has waited 0.01 s for the other 3 ranks"),
                                             HasSubstr("mpiexec should have started"),
                                             HasSubstr("at file:///tmp/phalanx-0-7.store"), Not(HasSubstr("--pty"))));
}

TEST(MeetingNotice, SaysWhyTheOtherTasksOfAnInteractiveStepDoNotCome) {
  EXPECT_THAT(meeting_notice(task(0), Seconds(20), true), AllOf(HasSubstr("srun --pty"), HasSubstr("salloc")));
}

TEST(MeetingNotice, IsSilentWhenTheRanksMeetInTime) {
  bool told = false;
  {
    const MeetingNotice notice(task(0), Seconds(600), [&](std::string_view) { told = true; });
  }
  EXPECT_FALSE(told);
}

TEST(MeetingNotice, CanBeSwitchedOff) {
  const MeetingNotice notice(task(0), Seconds(0), [](std::string_view text) { FAIL() << text; });
}

}  // namespace
}  // namespace phalanx
