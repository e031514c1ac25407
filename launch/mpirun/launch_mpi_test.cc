// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/launch_mpi.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/mpirun/end_of_run.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/mpirun_job.h"

namespace phalanx {
namespace {

using testing::becomes_true;
using testing::is_running;
using testing::LauncherProcess;
using testing::text_of;

class LaunchMpi : public testing::MpirunJob {
 protected:
  LaunchMpi() : MpirunJob("OMPI_COMM_WORLD_RANK", 5) {}
  ~LaunchMpi() override { EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left"; }
};

TEST_F(LaunchMpi, RunsRanks) {
  EXPECT_EQ(launch("echo $rank of $OMPI_COMM_WORLD_SIZE by $PHALANX_LAUNCHER, terminal $PHALANX_TERMINAL >&2; "
                   "[ $rank = 1 ] || echo speaks"),
            kDone);
  EXPECT_NE(error_.find("0 of 2 by mpi, terminal 0\n"), std::string::npos) << error_;
  EXPECT_NE(error_.find("1 of 2 by mpi, terminal 0\n"), std::string::npos) << error_;
  EXPECT_NE(output_.find("speaks"), std::string::npos);
  std::printf("start and end of 2 ranks that do nothing: %.0f ms\n", seconds_ * 1e3);
}

TEST_F(LaunchMpi, PassesOnOptionsAndVariables) {
  ::setenv("LAUNCH_MPI_TEST", "seven", 1);
  ::testing::internal::CaptureStdout();
  const Command command{"/bin/sh", "-c", "echo it is $LAUNCH_MPI_TEST"};
  EXPECT_EQ(launch_mpi({.ranks = 2,
                        .log_folder = scratch_.folder(),
                        .mpirun_options = {"--tag-output", "--bind-to", "none"},
                        .pass_variables = {"LAUNCH_MPI_*"},
                        .command = command}),
            kDone);
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(output.find("[1,1]<stdout>: it is seven"), std::string::npos) << output;
}

TEST_F(LaunchMpi, RemovesTheStoreOfTheRanksHoweverTheyEnd) {
  EXPECT_EQ(launch("file=${PHALANX_RENDEZVOUS#file://}; echo $rank >> $file; [ $rank = 0 ] || sleep 20; echo $file > " +
                   scratch_.path("where") + "; kill -9 $$"),
            kRankDied);
  const std::string file = text_of(scratch_.path("where"));
  ASSERT_TRUE(file.starts_with("/")) << file;
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(file).parent_path())) << file;
}

TEST_F(LaunchMpi, NamesTheRankThatEndedWithAStatus) {
  EXPECT_EQ(launch("[ $rank = 0 ] || exit 7; sleep 20"), kRankDied);
  EXPECT_TRUE(error_.starts_with("┌─ Rank 1 of 2")) << error_;
  EXPECT_NE(error_.find("exit status 7"), std::string::npos) << error_;
  EXPECT_EQ(error_.find("prterun"), std::string::npos) << error_;
  EXPECT_LT(seconds_, 15);
}

TEST_F(LaunchMpi, NamesTheRankThatWasKilled) {
  std::ofstream(scratch_.path("rank1.log")) << "what it last did\n";
  EXPECT_EQ(launch("[ $rank = 0 ] || kill -9 $$; sleep 20"), kRankDied);
  EXPECT_TRUE(error_.starts_with("┌─ Rank 1 of 2 on ")) << error_;
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
  EXPECT_NE(error_.find("what it last did"), std::string::npos) << error_;
  EXPECT_EQ(error_.find("prterun"), std::string::npos) << error_;
  EXPECT_LT(seconds_, 15);
  std::printf("death of a rank to the end of the job: %.2f s\n", seconds_);
}

TEST_F(LaunchMpi, ReportsTheMessageOfARank) {
  EXPECT_EQ(launch(rank_that("throw")), kFailed);
  EXPECT_TRUE(error_.starts_with("┌─ Rank 1 of 2 on ")) << error_;
  EXPECT_NE(error_.find("│ loss is not finite\n"), std::string::npos) << error_;
  EXPECT_EQ(error_.find("prterun"), std::string::npos) << error_;
}

TEST_F(LaunchMpi, PassesOnThatAnExpectationIsUnmet) {
  EXPECT_EQ(launch(rank_that("expect")), kExpectationFailed);
  EXPECT_NE(error_.find("│ expect.test.loss.max: wanted <= 1, got 2\n"), std::string::npos) << error_;
  EXPECT_EQ(error_.find("prterun"), std::string::npos) << error_;
}

TEST_F(LaunchMpi, ShowsWhatMpirunSaysWhereNothingElseExplains) {
  EXPECT_EQ(launch(Command{"/no/such/program"}), kRankDied);
  EXPECT_TRUE(error_.starts_with("┌─ The job failed")) << error_;
  EXPECT_NE(error_.find("/no/such/program"), std::string::npos) << error_;
}

TEST_F(LaunchMpi, InterruptStopsAllRanks) { interrupt_stops_all_ranks(); }

TEST_F(LaunchMpi, SecondInterruptEndsRanksThatDoNotListen) { second_interrupt_ends_ranks_that_do_not_listen(); }

TEST_F(LaunchMpi, NothingOutlivesAKilledLauncher) { nothing_outlives_a_killed_launcher(); }

TEST_F(LaunchMpi, NothingOutlivesAKilledMpirun) {
  auto launcher = in_background(rank_that("hang"));
  ASSERT_TRUE(both_ready());
  const auto processes = launcher.descendants();
  ASSERT_GE(processes.size(), 4u);
  const auto is_mpirun = [](pid_t process) {  // the launcher has another child, which removes its folder
    return text_of("/proc/" + std::to_string(process) + "/comm") != "phalanx-tidy\n";
  };
  ::kill(*std::ranges::find_if(processes, is_mpirun), SIGKILL);
  EXPECT_EQ(launcher.wait(), kRankDied);
  for (const pid_t process : processes) EXPECT_TRUE(becomes_true([&] { return !is_running(process); })) << process;
  EXPECT_NE(launcher.output().find("mpirun: It was killed by signal 9"), std::string::npos) << launcher.output();
}

TEST_F(LaunchMpi, GoesOnWithoutARankThatIsLost) {
  goes_on_ = true;
  EXPECT_EQ(launch(rank_that("die")), kDone);
  EXPECT_NE(output_.find("goes on"), std::string::npos) << output_;
  EXPECT_EQ(error_, "");
  EXPECT_TRUE(lost_ranks(scratch_.folder()).empty());
}

TEST_F(LaunchMpi, IsNotDoneIfAllRanksWereKilledAlthoughMpirunEndsWithStatus0) {
  goes_on_ = true;
  note_end_of_run(scratch_.folder(), kDone);  // of an earlier job
  EXPECT_EQ(launch("kill -9 $$"), kRankDied);
  EXPECT_TRUE(error_.starts_with("┌─ The job failed")) << error_;
  EXPECT_NE(error_.find("no rank has noted in " + scratch_.folder()), std::string::npos) << error_;
}

TEST_F(LaunchMpi, IsNotDoneIfOnlyOtherRanksThanTheFirstHaveLeft) {
  goes_on_ = true;
  EXPECT_EQ(launch(rank_that("leave_first")), kRankDied);
  EXPECT_NE(error_.find("no rank has noted in " + scratch_.folder()), std::string::npos) << error_;
}

TEST_F(LaunchMpi, HasTheStatusWithWhichRanksHaveEndedTheRun) {
  goes_on_ = true;
  EXPECT_EQ(launch(rank_that("stop")), kTimeUp);
  EXPECT_EQ(error_, "");
  EXPECT_EQ(take_end_of_run(scratch_.folder()), std::nullopt) << "it was not removed";
}

// A file system may show late what another host has written. mpirun kills what a rank leaves behind, so no child of the
// rank can write the note.
TEST_F(LaunchMpi, WaitsForTheNoteOfAnotherHost) {
  const std::string rank_ends = scratch_.path("rank_ends");
  std::thread file_system([&] {
    EXPECT_TRUE(becomes_true([&] { return std::filesystem::exists(rank_ends); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    note_end_of_run(scratch_.folder(), kDone);
  });
  EXPECT_EQ(launch_mpi({.ranks = 1,
                        .hosts = {"localhost:1"},
                        .log_folder = scratch_.folder(),
                        .command = {"/bin/sh", "-c", "echo > " + rank_ends},
                        .goes_on = true}),
            kDone);
  file_system.join();
}

TEST_F(LaunchMpi, DoesNotWaitForSuchANoteAfterCtrlC) {
  const std::string rank_ends = scratch_.path("rank_ends");
  LauncherProcess launcher(scratch_, [&] {
    return launch_mpi({.ranks = 1,
                       .hosts = {"localhost:1"},
                       .log_folder = scratch_.folder(),
                       .command = {"/bin/sh", "-c", "echo > " + rank_ends},
                       .goes_on = true});
  });
  EXPECT_TRUE(
      becomes_true([&] { return launcher.output().find("All ranks have ended; waits") != std::string::npos; }, 15));
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  EXPECT_NE(launcher.output().find("how the run has ended is unknown: see " + scratch_.folder()), std::string::npos)
      << launcher.output();
}

TEST_F(LaunchMpi, EndsAfterAFailureBeforeTrainingAlthoughMpirunDoesNot) {
  goes_on_ = true;
  EXPECT_EQ(launch(rank_that("throw")), kFailed);
  EXPECT_TRUE(error_.starts_with("┌─ Rank 1 of 2 on ")) << error_;
  EXPECT_NE(error_.find("│ loss is not finite\n"), std::string::npos) << error_;
  EXPECT_EQ(error_.find("prterun"), std::string::npos) << error_;
}

TEST_F(LaunchMpi, AKilledRankIsTheCauseEvenIfItsEchoComesFirst) {
  EXPECT_EQ(launch(rank_that("echo")), kRankDied);
  EXPECT_TRUE(error_.starts_with("┌─ Rank 1 of 2")) << error_;
  EXPECT_NE(error_.find("SIGKILL"), std::string::npos) << error_;
}

}  // namespace
}  // namespace phalanx
