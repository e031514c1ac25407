// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "launch/testing/launcher_process.h"

namespace phalanx::testing {

/// Tests of launch_mpi() that hold for every mpirun. Jobs have two ranks.
class MpirunJob : public ::testing::Test {
 protected:
  using Command = std::vector<std::string>;

  /// `rank_variable`: the environment variable in which this mpirun tells a rank its number. `seconds_to_start`: the
  /// longest time until both ranks run.
  MpirunJob(std::string rank_variable, double seconds_to_start)
      : rank_variable_(std::move(rank_variable)), seconds_to_start_(seconds_to_start) {}

  /// Runs the job, and returns its status. Keeps its output, and the seconds it took.
  int launch(const Command& command);
  int launch(const std::string& script);  // a shell script in which $rank is the rank

  /// Returns a command of the program launch_mpi_test_rank, which does what its argument says.
  Command rank_that(const std::string& does) const;

  /// Starts the job in a child process. Its ranks run once both_ready() returns true, if they are those of rank_that().
  LauncherProcess in_background(const Command& command) const;
  bool both_ready() const;
  pid_t pid_of_rank(int rank) const;

  void interrupt_stops_all_ranks() const;
  void second_interrupt_ends_ranks_that_do_not_listen() const;
  void nothing_outlives_a_killed_launcher() const;

  Scratch scratch_;
  bool goes_on_ = false;  // MpiLaunch::goes_on of launch()
  std::string output_, error_;
  double seconds_ = 0;

 private:
  std::string rank_variable_;
  double seconds_to_start_;
};

}  // namespace phalanx::testing
