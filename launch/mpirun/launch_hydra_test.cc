// SPDX-License-Identifier: Apache-2.0
// Tests launch_mpi() with the Hydra that PHALANX_TEST_MPIEXEC names; launch_mpi_test.cc tests it with Open MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "launch/exit_status.h"
#include "launch/mpirun/launch_mpi.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

using ::testing::AnyOf;
using testing::becomes_true;
using ::testing::HasSubstr;
using testing::is_running;
using testing::LauncherProcess;
using ::testing::Not;
using ::testing::StartsWith;
using testing::text_of;

using Command = std::vector<std::string>;

class LaunchHydra : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path mpiexec = ::getenv("PHALANX_TEST_MPIEXEC");
    if (mpiexec.filename() == "absent.txt") GTEST_SKIP() << text_of(mpiexec);
    // The launcher looks for mpirun, which in Intel MPI is a script.
    ::setenv("MPI_HOME", fs::canonical(mpiexec).parent_path().parent_path().c_str(), 1);
  }

  int launch(const Command& command) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const auto start = std::chrono::steady_clock::now();
    const int status = launch_mpi({.ranks = 2, .log_folder = scratch_.folder(), .command = command});
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    error_ = ::testing::internal::GetCapturedStderr();
    output_ = ::testing::internal::GetCapturedStdout();
    return status;
  }

  // Runs a script in which $rank is the rank.
  int launch(const std::string& script) { return launch(Command{"/bin/sh", "-c", "rank=$PMI_RANK; " + script}); }

  Command rank_that(const std::string& does) const {
    return {std::string(::getenv("TEST_SRCDIR")) + "/phalanx/launch/launch_mpi_test_rank", scratch_.folder(), does};
  }

  LauncherProcess in_background(const Command& command) {
    return LauncherProcess(
        scratch_, [&] { return launch_mpi({.ranks = 2, .log_folder = scratch_.folder(), .command = command}); });
  }

  bool both_ready() const {
    return becomes_true([&] { return pid_of_rank(0) > 0 && pid_of_rank(1) > 0; }, 20);
  }
  pid_t pid_of_rank(int rank) const {
    return std::atoi(text_of(scratch_.path("ready" + std::to_string(rank))).c_str());
  }

  testing::Scratch scratch_;
  std::string output_, error_;
  double seconds_ = 0;
};

TEST_F(LaunchHydra, RunsRanks) {
  EXPECT_EQ(launch("echo $rank of $PMI_SIZE by $PHALANX_LAUNCHER, terminal $PHALANX_TERMINAL >&2; "
                   "[ $rank = 1 ] || echo speaks"),
            kDone);
  EXPECT_THAT(error_, HasSubstr("0 of 2 by mpi, terminal 0\n"));
  EXPECT_THAT(error_, HasSubstr("1 of 2 by mpi, terminal 0\n"));
  EXPECT_THAT(output_, HasSubstr("speaks\n"));
}

TEST_F(LaunchHydra, PassesOnOptionsAndVariables) {
  ::setenv("LAUNCH_MPI_TEST", "seven", 1);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(launch_mpi({.ranks = 2,
                        .log_folder = scratch_.folder(),
                        .mpirun_options = {"-genv", "OTHER", "eight"},
                        .pass_variables = {"LAUNCH_MPI_*"},
                        .command = {"/bin/sh", "-c", "echo it is $LAUNCH_MPI_TEST, not $OTHER"}}),
            kDone);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("it is seven, not eight\n"));
}

TEST_F(LaunchHydra, StartsRanksOnHostsThatAreListed) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(launch_mpi({.ranks = 3,
                        .hosts = {"localhost:3"},
                        .log_folder = scratch_.folder(),
                        .command = {"/bin/sh", "-c", "echo $PMI_RANK of $MPI_LOCALNRANKS"}}),
            kDone);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("2 of 3\n"));
}

TEST_F(LaunchHydra, SaysThatARankWasKilledAndRemovesTheStoreOfTheRanks) {
  EXPECT_EQ(launch("echo ${PHALANX_RENDEZVOUS#file://} > " + scratch_.path("where") +
                   "; [ $rank = 0 ] || kill -9 $$; sleep 2"),
            kRankDied);
  EXPECT_THAT(error_, AnyOf(StartsWith("┌─ The job failed"), StartsWith("┌─ Rank 1 of 2")));  // MPICH names no rank
  EXPECT_THAT(error_, HasSubstr("was killed by signal 9 (SIGKILL)"));
  EXPECT_EQ(output_.find("BAD TERMINATION"), std::string::npos) << output_;
  const fs::path store = text_of(scratch_.path("where")).substr(0, text_of(scratch_.path("where")).find('\n'));
  ASSERT_TRUE(store.is_absolute()) << store;
  EXPECT_FALSE(fs::exists(store.parent_path())) << store;
}

TEST_F(LaunchHydra, ReportsTheMessageOfARankAndEndsTheOthers) {
  EXPECT_EQ(launch(rank_that("throw")), kFailed);
  EXPECT_THAT(error_, StartsWith("┌─ Rank 1 of 2 on "));
  EXPECT_THAT(error_, HasSubstr("│ loss is not finite\n"));
  EXPECT_THAT(error_ + output_, Not(HasSubstr("mpiexec")));
  EXPECT_LT(seconds_, 15);
}

TEST_F(LaunchHydra, PassesOnThatAnExpectationIsUnmet) {
  EXPECT_EQ(launch(rank_that("expect")), kExpectationFailed);
  EXPECT_THAT(error_, HasSubstr("│ expect.test.loss.max: wanted <= 1, got 2\n"));
}

TEST_F(LaunchHydra, ShowsWhatMpiexecSaysWhereNothingElseExplains) {
  EXPECT_EQ(launch(Command{"/no/such/program"}), kRankDied);
  EXPECT_THAT(error_, HasSubstr("┌─ The job failed"));
  // Intel MPI's may die of SIGPIPE, with half of a message, or with none.
  const bool intel = fs::exists(fs::path(::getenv("MPI_HOME")) / "bin/hydra_bstrap_proxy");
  if (!intel) {
    EXPECT_THAT(error_, HasSubstr("/no/such/program"));
  }
}

TEST_F(LaunchHydra, InterruptStopsAllRanks) {
  auto launcher = in_background(rank_that("wait"));
  ASSERT_TRUE(both_ready());
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  EXPECT_EQ(launcher.output(), "Stopping; press Ctrl-C again to end it now\n");
}

TEST_F(LaunchHydra, SecondInterruptEndsRanksThatDoNotListen) {
  auto launcher = in_background(rank_that("hang"));
  ASSERT_TRUE(both_ready());
  ::kill(pid_of_rank(0), SIGSTOP);
  launcher.signal(SIGINT);
  ::usleep(300'000);
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  for (const int rank : {0, 1}) EXPECT_TRUE(becomes_true([&] { return !is_running(pid_of_rank(rank)); })) << rank;
  EXPECT_EQ(launcher.output(),
            "Stopping; press Ctrl-C again to end it now\nEnded at once, as requested, before the run had stopped\n");
}

TEST_F(LaunchHydra, NothingOutlivesAKilledLauncher) {
  auto launcher = in_background(rank_that("hang"));
  ASSERT_TRUE(both_ready());
  const auto processes = launcher.descendants();
  EXPECT_GE(processes.size(), 4u);
  launcher.signal(SIGKILL);
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  for (const pid_t process : processes) EXPECT_TRUE(becomes_true([&] { return !is_running(process); })) << process;
}

TEST_F(LaunchHydra, NothingOutlivesAKilledMpiexec) {
  auto launcher = in_background(rank_that("hang"));
  ASSERT_TRUE(both_ready());
  const auto processes = launcher.descendants();
  const auto is_mpiexec = [](pid_t process) {
    return text_of("/proc/" + std::to_string(process) + "/comm") == "mpiexec.hydra\n";
  };
  ::kill(*std::ranges::find_if(processes, is_mpiexec), SIGKILL);
  EXPECT_EQ(launcher.wait(), kRankDied);
  for (const pid_t process : processes) EXPECT_TRUE(becomes_true([&] { return !is_running(process); })) << process;
}

}  // namespace
}  // namespace phalanx
