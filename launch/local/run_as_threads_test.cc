// SPDX-License-Identifier: Apache-2.0
#include "launch/local/run_as_threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/local/launch_local.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/local_launches.h"

namespace phalanx {
namespace {

using testing::becomes_true;

// Tests of ranks that are threads of one child process.
class LaunchThreads : public testing::LaunchLocal {
 protected:
  int launch(int ranks, const std::function<int(int)>& body, const std::function<void()>& prepare = {}) {
    return LaunchLocal::launch({.ranks = ranks, .threads = true, .prepare = prepare}, body);
  }
};

TEST_F(LaunchThreads, ShareOneChildProcess) {
  std::atomic<int> arrived = 0;
  const pid_t launcher = ::getpid();
  const int status = launch(3, [&](int) {
    ++arrived;
    return becomes_true([&] { return arrived == 3; }) && ::getpid() != launcher ? 0 : 1;
  });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(arrived, 0) << "the child has its own memory";
}

TEST_F(LaunchThreads, ArePreparedOnceBeforeTheyBegin) {
  std::atomic<int> prepared = 0;
  EXPECT_EQ(launch(2, [&](int) { return prepared == 1 ? 0 : 1; }, [&] { ++prepared; }), kDone);
}

TEST_F(LaunchThreads, AFailureToPrepareIsReportedAsThatOfRank0) {
  EXPECT_EQ(launch(2, [](int) { return 0; }, [] { throw std::runtime_error("no data"); }), kFailed);
  EXPECT_NE(error_.find("Rank 0 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("│ no data\n"), std::string::npos) << error_;
}

TEST_F(LaunchThreads, AnExceptionIsReportedWithItsRank) {
  EXPECT_EQ(launch(2,
                   [](int rank) -> int {
                     if (rank == 1) throw ConfigError("no such model");
                     return 0;
                   }),
            kUsage);
  EXPECT_NE(error_.find("Rank 1 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("│ no such model\n"), std::string::npos) << error_;
}

TEST_F(LaunchThreads, HaveTheMostSeriousOfTheirStatuses) {
  const auto status_of = [&](const std::vector<int>& statuses) {
    return launch(static_cast<int>(statuses.size()),
                  [&](int rank) { return statuses[static_cast<std::size_t>(rank)]; });
  };
  EXPECT_EQ(status_of({kDone, kTimeUp}), kTimeUp);
  EXPECT_EQ(status_of({kTimeUp, kInterrupted}), kInterrupted);
  EXPECT_EQ(status_of({kInterrupted, kFailed, kDone}), kFailed);
  EXPECT_EQ(status_of({kDone, kExpectationFailed}), kExpectationFailed);
  EXPECT_EQ(status_of({kFailed, kUsage}), kUsage);
  EXPECT_EQ(status_of({kDone, 7}), kRankDied) << "an unexpected status is a death";
}

TEST_F(LaunchThreads, AThreadThatHangsDoesNotHideTheFailureOfAnother) {
  const int status = launch(2, [](int rank) -> int {
    if (rank == 0) throw std::runtime_error("out of paper");
    for (;;) ::pause();
  });
  EXPECT_EQ(status, kFailed);
  EXPECT_NE(error_.find("out of paper"), std::string::npos) << error_;
}

}  // namespace
}  // namespace phalanx
