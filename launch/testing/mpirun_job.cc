// SPDX-License-Identifier: Apache-2.0
#include "launch/testing/mpirun_job.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "launch/exit_status.h"
#include "launch/mpirun/launch_mpi.h"

namespace phalanx::testing {

int MpirunJob::launch(const Command& command) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const auto start = std::chrono::steady_clock::now();
  const int status = launch_mpi({.ranks = 2, .log_folder = scratch_.folder(), .command = command, .goes_on = goes_on_});
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  error_ = ::testing::internal::GetCapturedStderr();
  output_ = ::testing::internal::GetCapturedStdout();
  return status;
}

int MpirunJob::launch(const std::string& script) {
  return launch(Command{"/bin/sh", "-c", "rank=$" + rank_variable_ + "; " + script});
}

MpirunJob::Command MpirunJob::rank_that(const std::string& does) const {
  return {std::string(::getenv("TEST_SRCDIR")) + "/phalanx/launch/launch_mpi_test_rank", scratch_.folder(), does};
}

LauncherProcess MpirunJob::in_background(const Command& command) const {
  return LauncherProcess(scratch_,
                         [&] { return launch_mpi({.ranks = 2, .log_folder = scratch_.folder(), .command = command}); });
}

bool MpirunJob::both_ready() const {
  return becomes_true([&] { return pid_of_rank(0) > 0 && pid_of_rank(1) > 0; }, seconds_to_start_);
}

pid_t MpirunJob::pid_of_rank(int rank) const {
  return std::atoi(text_of(scratch_.path("ready" + std::to_string(rank))).c_str());
}

void MpirunJob::interrupt_stops_all_ranks() const {
  auto launcher = in_background(rank_that("wait"));
  ASSERT_TRUE(both_ready());
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  EXPECT_EQ(launcher.output(), "Stopping; press Ctrl-C again to end it now\n");
}

void MpirunJob::second_interrupt_ends_ranks_that_do_not_listen() const {
  auto launcher = in_background(rank_that("hang"));
  ASSERT_TRUE(both_ready());
  ::kill(pid_of_rank(0), SIGSTOP);  // otherwise it would stop, and mpirun would end the other one
  launcher.signal(SIGINT);
  ::usleep(300'000);
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  for (const int rank : {0, 1}) EXPECT_TRUE(becomes_true([&] { return !is_running(pid_of_rank(rank)); })) << rank;
  EXPECT_EQ(launcher.output(),
            "Stopping; press Ctrl-C again to end it now\nEnded at once, as requested, before the run had stopped\n");
}

void MpirunJob::nothing_outlives_a_killed_launcher() const {
  auto launcher = in_background(rank_that("hang"));
  ASSERT_TRUE(both_ready());
  const auto processes = launcher.descendants();
  EXPECT_GE(processes.size(), 4u);
  launcher.signal(SIGKILL);
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  for (const pid_t process : processes) EXPECT_TRUE(becomes_true([&] { return !is_running(process); })) << process;
}

}  // namespace phalanx::testing
