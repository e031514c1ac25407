// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/watched_rank.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/mpirun/end_of_run.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

// The process that mpirun starts is a child of the test.
class WatchedRanks : public ::testing::Test {
 protected:
  [[noreturn]] void run(const std::function<int()>& rank) const {
    std::exit(run_watched({.rank = 1, .log_folder = scratch_.folder(), .lost_after = 0.3}, rank));
  }

  // Returns the failure that the rank has left, and removes it.
  Failure left() const {
    const auto all = take_failures(scratch_.folder());
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? Failure{} : all.front();
  }

  testing::Scratch scratch_;
};

TEST_F(WatchedRanks, EndTheirProcessWithTheirStatus) {
  EXPECT_EXIT(run([] { return kDone; }), ExitedWithCode(kDone), "");
  EXPECT_EXIT(run([] { return kInterrupted; }), ExitedWithCode(kInterrupted), "");
  EXPECT_TRUE(take_failures(scratch_.folder()).empty());
}

TEST_F(WatchedRanks, HaveNotEndedTheRunWithAStatusThatIsNone) {
  for (const char* text : {"", "done", "1", "9"}) {
    std::ofstream(scratch_.path("run.ended")) << text;
    EXPECT_EQ(take_end_of_run(scratch_.folder()), std::nullopt) << text;
  }
}

TEST_F(WatchedRanks, EndByExit) {
  const auto leave = [] {
    std::atexit([] { static_cast<void>(!::write(STDERR_FILENO, "leaves", 6)); });
    return kDone;
  };
  EXPECT_EXIT(run(leave), ExitedWithCode(kDone), "leaves");
}

// A rank of mpi that leaves before the others does so.
TEST_F(WatchedRanks, MayEndBySigkillAfterTheyHaveStopped) {
  const auto stop = [] {
    std::atexit([] { ::raise(SIGKILL); });
    return kInterrupted;
  };
  EXPECT_EXIT(run(stop), KilledBySignal(SIGKILL), "");
  EXPECT_TRUE(take_failures(scratch_.folder()).empty());
}

TEST_F(WatchedRanks, LeaveTheirException) {
  EXPECT_EXIT(run([]() -> int { throw std::runtime_error("out of paper"); }), ExitedWithCode(kFailed), "");
  const auto failure = left();
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.message, "out of paper");
  EXPECT_EQ(failure.status, kFailed);
}

TEST_F(WatchedRanks, EndAtOnceByASignalIfTheOthersGoOn) {
  note_training(scratch_.folder());
  const auto fail = []() -> int {
    std::atexit([] { static_cast<void>(!::write(STDERR_FILENO, "waits", 5)); });
    throw std::runtime_error("out of paper");
  };
  EXPECT_EXIT(run(fail), KilledBySignal(SIGKILL), "^$");
  EXPECT_EQ(left().message, "out of paper");
}

TEST_F(WatchedRanks, EndAtOnceByASignalIfTheOthersHaveLeftThem) {
  mark_lost(scratch_.folder(), {.rank = 1, .message = "its replica has lost a rank"});
  const auto leave = [] {
    std::atexit([] { static_cast<void>(!::write(STDERR_FILENO, "waits", 5)); });
    return kDone;
  };
  EXPECT_EXIT(run(leave), KilledBySignal(SIGKILL), "^$");
  EXPECT_TRUE(take_failures(scratch_.folder()).empty());
}

// Others may not have ended yet.
TEST_F(WatchedRanks, ThatLeaveDoNotEndTheRun) {
  EXPECT_EXIT(run([] { return kDone; }), ExitedWithCode(kDone), "");
  EXPECT_EXIT(run([]() -> int { std::exit(kDone); }), ExitedWithCode(kDone), "");
  EXPECT_EQ(take_end_of_run(scratch_.folder()), std::nullopt);
}

TEST_F(WatchedRanks, ThatAreKilledEndTheirProcessByASignalAndLeaveTheReason) {
  EXPECT_EXIT(run([] { return ::raise(SIGKILL); }), KilledBySignal(SIGKILL), "");
  const auto failure = left();
  EXPECT_NE(failure.message.find("killed by signal 9 (SIGKILL)"), std::string::npos) << failure.message;
  EXPECT_EQ(failure.status, kRankDied);
}

TEST_F(WatchedRanks, KeepTheReasonThatTheyHaveGiven) {
  const auto fail = [this] {
    write_failure(scratch_.folder(), {.rank = 1, .message = "out of paper", .status = kFailed});
    return ::raise(SIGKILL);
  };
  EXPECT_EXIT(run(fail), KilledBySignal(SIGKILL), "");
  EXPECT_EQ(left().message, "out of paper");
}

TEST_F(WatchedRanks, AreKilledIfTheyAreStoppedForTooLong) {
  EXPECT_EXIT(run([] { return ::raise(SIGSTOP); }), KilledBySignal(SIGKILL), "");
  EXPECT_EQ(left().message, "It was stopped for 0.3 s (faults.lost_after), and was killed.");
}

TEST_F(WatchedRanks, GetTheRequestToStopWithoutAWordToTheUser) {
  const auto wait_for_stop = [] {
    ::signal(SIGUSR1, [](int) { ::_exit(kInterrupted); });
    ::kill(::getppid(), SIGUSR1);
    while (true) ::pause();
    return kFailed;
  };
  EXPECT_EXIT(run(wait_for_stop), ExitedWithCode(kInterrupted), "^$");
  EXPECT_TRUE(take_failures(scratch_.folder()).empty());
}

}  // namespace
}  // namespace phalanx
