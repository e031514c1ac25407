// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/rendezvous_notice.h"

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

TEST(RendezvousNotice, TellsWhoIsWaitedForWhileTheRanksHaveNotMet) {
  std::promise<std::string> printed;
  const RendezvousNotice notice(task(0), Seconds(0.01),
                                [&](std::string_view text) { printed.set_value(std::string(text)); });
  EXPECT_THAT(
      printed.get_future().get(),
      AllOf(HasSubstr("rank 0 has waited 0.01 s for the other 3 ranks"), HasSubstr("mpiexec should have started"),
            HasSubstr("at file:///tmp/phalanx-0-7.store"), Not(HasSubstr("--pty"))));
}

TEST(RendezvousNotice, SaysWhyTheOtherTasksOfAnInteractiveStepDoNotCome) {
  EXPECT_THAT(rendezvous_notice(task(0), Seconds(20), true), AllOf(HasSubstr("srun --pty"), HasSubstr("salloc")));
}

TEST(RendezvousNotice, IsSilentWhenTheRanksMeetInTime) {
  bool printed = false;
  {
    const RendezvousNotice notice(task(0), Seconds(600), [&](std::string_view) { printed = true; });
  }
  EXPECT_FALSE(printed);
}

TEST(RendezvousNotice, CanBeSwitchedOff) {
  const RendezvousNotice notice(task(0), Seconds(0), [](std::string_view text) { FAIL() << text; });
}

}  // namespace
}  // namespace phalanx
