// SPDX-License-Identifier: Apache-2.0
// Tests launch_mpi() with the Hydra that PHALANX_TEST_MPIEXEC names; launch_mpi_test.cc tests it with Open MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "launch/exit_status.h"
#include "launch/mpirun/launch_mpi.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/mpirun_job.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

using ::testing::AnyOf;
using testing::becomes_true;
using ::testing::HasSubstr;
using testing::is_running;
using ::testing::Not;
using ::testing::StartsWith;
using testing::text_of;

class LaunchHydra : public testing::MpirunJob {
 protected:
  LaunchHydra() : MpirunJob("PMI_RANK", 20) {}

  void SetUp() override {
    const fs::path mpiexec = ::getenv("PHALANX_TEST_MPIEXEC");
    if (mpiexec.filename() == "absent.txt") GTEST_SKIP() << text_of(mpiexec);
    // The launcher looks for mpirun, which in Intel MPI is a script.
    ::setenv("MPI_HOME", fs::canonical(mpiexec).parent_path().parent_path().c_str(), 1);
  }
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

TEST_F(LaunchHydra, InterruptStopsAllRanks) { interrupt_stops_all_ranks(); }

TEST_F(LaunchHydra, SecondInterruptEndsRanksThatDoNotListen) { second_interrupt_ends_ranks_that_do_not_listen(); }

TEST_F(LaunchHydra, NothingOutlivesAKilledLauncher) { nothing_outlives_a_killed_launcher(); }

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
