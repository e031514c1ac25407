// SPDX-License-Identifier: Apache-2.0
#include "launch/local/launch_local.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/local/print_to_console.h"
#include "launch/signals/stop_signal.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/local_launches.h"

namespace phalanx {
namespace {

using testing::LaunchLocal;
using testing::text_of;

std::string variable(const char* name) {
  const char* value = ::getenv(name);
  return value ? value : "";
}

TEST_F(LaunchLocal, RunsEachRankInItsEnvironment) {
  const int status = launch(3, [&](int rank) {
    const std::string rendezvous = variable("PHALANX_RENDEZVOUS");
    const bool right = variable("RANK") == std::to_string(rank) && variable("WORLD_SIZE") == "3" &&
                       variable("LOCAL_RANK") == std::to_string(rank) && variable("LOCAL_WORLD_SIZE") == "3" &&
                       variable("PHALANX_LAUNCHER") == "local" && rendezvous.starts_with("file:///");
    if (rank == 0) std::ofstream(rendezvous.substr(7)) << "all may write here";
    return right ? 0 : 1;
  });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(error_, "");
  EXPECT_EQ(variable("RANK"), "");
}

TEST_F(LaunchLocal, OnlyRank0Prints) {
  std::ofstream(scratch_.path("rank1.log")) << "before\n";
  launch(2, [](int rank) {
    std::fprintf(stderr, "error of %d\n", rank);
    if (rank == 1) std::printf("output of 1\n");
    return std::getchar() == EOF ? 0 : 1;
  });
  EXPECT_EQ(error_, "error of 0\n");
  EXPECT_EQ(text_of(scratch_.path("rank1.log")), "before\nerror of 1\noutput of 1\n");
}

TEST_F(LaunchLocal, LeavesTheOutputOfItsRanksAloneIfAsked) {
  ::testing::internal::CaptureStderr();
  const Verdict verdict = run_local({.ranks = 2, .log_folder = log_folder_, .redirect_output = false}, [](int rank) {
    if (rank == 1) std::fprintf(stderr, "error of 1\n");
    if (rank == 1) throw std::runtime_error("it failed");
    return 0;
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error of 1\n") << "and no report of the failure";
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->rank, 1);
  EXPECT_EQ(verdict.cause->message, "it failed");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("rank1.log")));
}

TEST_F(LaunchLocal, EveryRankReachesTheConsole) {
  EXPECT_EQ(launch(2,
                   [](int rank) {
                     if (rank == 1) print_to_console("rank 0 hangs");
                     return 0;
                   }),
            kDone);
  EXPECT_EQ(error_, "rank 0 hangs\n");
}

TEST_F(LaunchLocal, RanksInheritNoDescriptorOfTheLauncher) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  const int status = launch(2, [&](int rank) {
    const auto here = open_files();
    // One more file for the standard error captured by this test; and two for the console, if the rank has a log.
    const auto expected = before + (rank == 0 ? 1 : 3);
    if (here > expected) std::fprintf(stderr, "%td, was %td\n", here, before);
    return here <= expected ? 0 : 1;
  });
  EXPECT_EQ(status, 0) << error_;
  EXPECT_EQ(open_files(), before);
}

TEST_F(LaunchLocal, AnExceptionIsReportedOnce) {
  const int status = launch(2, [](int rank) -> int {
    if (rank == 1) throw std::runtime_error("loss is not finite");
    ::usleep(20'000);
    throw CommError(CommError::Kind::kPeerLost, "rank 1 is gone");
  });
  EXPECT_EQ(status, kFailed);
  EXPECT_NE(error_.find("Rank 1 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("│ loss is not finite\n"), std::string::npos) << error_;
  EXPECT_NE(error_.find("Log: " + scratch_.path("rank1.log")), std::string::npos) << error_;
  EXPECT_NE(error_.find("1 other rank ended with it."), std::string::npos) << error_;
  EXPECT_EQ(error_.find("is gone"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, AReasonIsReportedEvenIfTheLogFolderIsFull) {
  log_folder_ = scratch_.path("logs");
  std::filesystem::create_directory(log_folder_);
  const int status = launch(2, [&](int rank) -> int {
    if (rank == 0) return 0;
    std::filesystem::remove_all(log_folder_);
    throw std::runtime_error("step-00000001.tmp/state: No space left on device");
  });
  EXPECT_EQ(status, kFailed);
  EXPECT_NE(error_.find("│ step-00000001.tmp/state: No space left on device\n"), std::string::npos) << error_;
  EXPECT_EQ(error_.find("without giving a reason"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, AConfigErrorIsAUsageError) {
  EXPECT_EQ(launch(2, [](int) -> int { throw ConfigError("no such model"); }), kUsage);
}

TEST_F(LaunchLocal, AnUnmetExpectationHasAStatusOfItsOwn) {
  EXPECT_EQ(launch(2, [](int) -> int { throw ExpectationError("expect.test.loss.max: wanted <= 1, got 2"); }),
            kExpectationFailed);
  EXPECT_NE(error_.find("│ expect.test.loss.max: wanted <= 1, got 2\n"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, UnexpectedExitStatusIsADeath) {
  EXPECT_EQ(launch(2, [](int rank) { return rank == 1 ? 7 : 0; }), kRankDied);
  EXPECT_NE(error_.find("exit status 7"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, AKilledRankIsTheCauseEvenIfItsEchoComesFirst) {
  const int status = launch(2, [&](int rank) -> int {
    if (rank == 0) {
      write_failure(scratch_.folder(), {.rank = 0, .message = "rank 1 is gone", .secondary = true, .time = 1});
      return kFailed;
    }
    std::fprintf(stderr, "what it last did\n");
    ::usleep(50'000);
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(status, kRankDied);
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
  EXPECT_NE(error_.find("out-of-memory"), std::string::npos) << error_;
  EXPECT_NE(error_.find("Last lines of its log:\n│   what it last did\n"), std::string::npos) << error_;
  EXPECT_LT(seconds_, 2);
}

TEST_F(LaunchLocal, RankThatHangsIsAskedAndThenKilled) {
  const int status = launch(3, [&](int rank) {
    if (rank == 0) ::raise(SIGABRT);
    if (rank == 2) ::signal(SIGTERM, SIG_IGN);
    if (rank == 1) install_stop_signal(StopOn::kLauncher);
    while (!stop_requested()) ::usleep(1000);
    std::ofstream(scratch_.path("stopped")) << rank;
    return static_cast<int>(kInterrupted);
  });
  EXPECT_EQ(status, kRankDied);
  EXPECT_EQ(text_of(scratch_.path("stopped")), "1");
  EXPECT_NE(error_.find("Rank 0 of 3"), std::string::npos) << error_;
  EXPECT_NE(error_.find("SIGABRT"), std::string::npos) << error_;
  EXPECT_NE(error_.find("2 other ranks ended with it."), std::string::npos) << error_;
  EXPECT_GT(seconds_, 2);
  EXPECT_LT(seconds_, 10);
  std::printf("death of a rank to the end of a job that hangs: %.2f s\n", seconds_);
}

TEST_F(LaunchLocal, EachChildIsPreparedBeforeItsRankBegins) {
  int prepared = 0;
  const LocalLaunch options{.ranks = 2, .prepare = [&] { ++prepared; }};
  EXPECT_EQ(launch(options, [&](int) { return prepared == 1 ? 0 : 1; }), kDone) << error_;
  EXPECT_EQ(prepared, 0) << "the launcher itself is no rank";
}

TEST_F(LaunchLocal, FailuresOfAnEarlierJobAreDropped) {
  write_failure(scratch_.folder(), {.rank = 0, .message = "old"});
  EXPECT_EQ(launch(2, [](int) { return 0; }), kDone);
}

TEST_F(LaunchLocal, ALogThatCannotBeOpenedIsReported) {
  std::filesystem::create_directory(scratch_.path("rank1.log"));
  EXPECT_EQ(launch(2, [](int) { return 0; }), kFailed);
  EXPECT_NE(error_.find("rank1.log: Is a directory"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, AddsLittleTime) {
  EXPECT_EQ(launch(2, [](int) { return 0; }), kDone);
  std::printf("start and end of 2 ranks that do nothing: %.1f ms\n", seconds_ * 1e3);
  EXPECT_LT(seconds_, 2);
}

}  // namespace
}  // namespace phalanx
