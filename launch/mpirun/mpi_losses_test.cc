// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/mpi_losses.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

class MpiLossesTest : public ::testing::Test {
 protected:
  // Runs an "mpirun" that ends by itself with status 0 after a second. Returns the signal that has ended it, or 0.
  int run(MpiLosses& losses) {
    Supervisor supervisor(
        {.stop = SIGUSR1, .orphaned = SIGKILL, .after_failure = {{milliseconds(0), SIGTERM}}, .forced = {}});
    losses.watch(supervisor);
    supervisor.start([] {
      ::usleep(1'000'000);
      return 0;
    });
    const auto end = supervisor.run().front();
    return WIFSIGNALED(end.status) ? WTERMSIG(end.status) : 0;
  }

  const std::string& folder() const { return scratch_.folder(); }

  testing::Scratch scratch_;
};

TEST_F(MpiLossesTest, DoNotEndTheJobAfterItsBeginning) {
  mark_lost(folder(), {.rank = 3, .message = "of an earlier job"});
  MpiLosses losses(folder());
  EXPECT_TRUE(lost_ranks(folder()).empty());
  note_training(folder());
  write_failure(folder(), {.rank = 1, .message = "killed", .status = kRankDied});
  EXPECT_EQ(run(losses), 0);
  mark_lost(folder(), {.rank = 1, .message = "killed"});
  write_failure(folder(), {.rank = 1, .message = "killed", .status = kRankDied});
  write_failure(folder(), {.rank = 2, .message = "the last rank", .status = kFailed});
  auto failures = take_failures(folder());
  losses.settle(failures);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].rank, 2);
  EXPECT_EQ(failures[0].status, kFailed);
}

TEST_F(MpiLossesTest, EndTheJobBeforeItHasBegun) {
  MpiLosses losses(folder());
  write_failure(folder(), {.rank = 1, .message = "no such dataset", .status = kFailed});
  EXPECT_EQ(run(losses), SIGTERM);
}

TEST_F(MpiLossesTest, AreNotTheLastFailuresOfAnMpirunThatEndsAtOnce) {
  MpiLosses losses(folder());
  Supervisor supervisor({.stop = SIGUSR1, .orphaned = SIGKILL, .after_failure = {}, .forced = {}});
  losses.watch(supervisor);
  supervisor.start([this] {
    write_failure(folder(), {.rank = 1, .message = "no such dataset", .status = kFailed});
    return 0;
  });
  supervisor.run();
  mark_lost(folder(), {.rank = 1, .message = "it has ended"});
  auto failures = take_failures(folder());
  losses.settle(failures);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].message, "no such dataset");
}

TEST_F(MpiLossesTest, AreNotRanksThatGiveUpOnOthers) {
  MpiLosses losses(folder());
  note_training(folder());
  write_failure(folder(), {.rank = 0, .message = "waited", .secondary = true, .status = kFailed});
  EXPECT_EQ(run(losses), SIGTERM);
  mark_lost(folder(), {.rank = 0, .message = "it has ended"});
  auto failures = take_failures(folder());
  losses.settle(failures);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].message, "waited");
}

TEST_F(MpiLossesTest, AreNotRanksThatEndForTheReasonOfAll) {
  MpiLosses losses(folder());
  note_training(folder());
  write_failure(folder(), {.rank = 0, .message = "expected more", .status = kExpectationFailed});
  EXPECT_EQ(run(losses), SIGTERM);
}

}  // namespace
}  // namespace phalanx
