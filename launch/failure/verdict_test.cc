// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/verdict.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "launch/exit_status.h"

namespace phalanx {
namespace {

RankEnd exited(int rank, int status, double time) {
  return {.rank = rank, .status = W_EXITCODE(status, 0), .time = time};
}

RankEnd killed(int rank, int signal, double time, bool by_supervisor = false) {
  return {.rank = rank, .status = W_EXITCODE(0, signal), .time = time, .by_supervisor = by_supervisor};
}

Failure left(int rank, double time, bool secondary = false) {
  return {.rank = rank, .message = "left", .secondary = secondary, .time = time};
}

TEST(Verdict, IsDoneIfAllRanksEndWell) {
  const Verdict verdict = judge({exited(0, 0, 1), exited(1, 0, 2)}, {}, false);
  EXPECT_EQ(verdict.status, kDone);
  EXPECT_FALSE(verdict.cause);
}

TEST(Verdict, TellsThatARankWasKilledBecauseItWasStopped) {
  RankEnd end = killed(1, SIGKILL, 1);
  end.stopped = true;
  const Verdict verdict = judge({end, exited(0, 0, 2)}, {}, false);
  ASSERT_TRUE(verdict.cause);
  EXPECT_NE(verdict.cause->message.find("stopped (SIGSTOP) for longer than faults.lost_after"), std::string::npos);
  EXPECT_EQ(verdict.cause->message.find("out-of-memory"), std::string::npos) << "a guess, but the reason is known";
}

TEST(Verdict, HasTheStatusOfTheFirstCause) {
  for (const auto& [own, job] : {std::pair{1, 1}, {2, 2}, {3, 3}, {4, 4}, {7, 3}, {255, 3}}) {
    const Verdict verdict = judge({exited(1, own, 1), exited(0, 1, 2)}, {left(0, 2)}, false);
    EXPECT_EQ(verdict.status, job) << own;
    ASSERT_TRUE(verdict.cause);
    EXPECT_EQ(verdict.cause->rank, 1);
    EXPECT_TRUE(verdict.unexplained);
    EXPECT_EQ(verdict.others, 1);
  }
}

TEST(Verdict, HasTheMessageThatTheRankLeft) {
  const Verdict verdict = judge({exited(0, 1, 2)}, {left(0, 1)}, false);
  EXPECT_EQ(verdict.cause->message, "left");
  EXPECT_FALSE(verdict.unexplained);
}

TEST(Verdict, DeathBySignalBeatsEchoesSeenBefore) {
  const Verdict verdict = judge({exited(0, 1, 1), killed(1, SIGKILL, 2)}, {left(0, 0.5, true)}, false);
  EXPECT_EQ(verdict.status, kRankDied);
  EXPECT_EQ(verdict.cause->rank, 1);
  EXPECT_NE(verdict.cause->message.find("SIGKILL"), std::string::npos);
  EXPECT_NE(verdict.cause->message.find("out-of-memory"), std::string::npos);
}

TEST(Verdict, EchoesCountIfThereIsNoOtherCause) {
  const Verdict verdict = judge({exited(0, 1, 1), killed(1, SIGKILL, 4, true)}, {left(0, 1, true)}, false);
  EXPECT_EQ(verdict.status, kFailed);
  EXPECT_EQ(verdict.cause->rank, 0);
  EXPECT_EQ(verdict.others, 1);
}

TEST(Verdict, RankThatFailedAndThenHungFailed) {
  EXPECT_EQ(judge({killed(0, SIGKILL, 4, true)}, {left(0, 1)}, false).status, kFailed);
}

TEST(Verdict, RanksMayStopByThemselves) {
  const Verdict verdict = judge({exited(0, kInterrupted, 1), exited(1, kInterrupted, 1)}, {}, false);
  EXPECT_EQ(verdict.status, kInterrupted);
  EXPECT_FALSE(verdict.cause);
}

TEST(Verdict, InterruptsExplainTheirDeaths) {
  const Verdict verdict =
      judge({killed(0, SIGINT, 1), killed(1, SIGTERM, 1, true), exited(2, 1, 2)}, {left(2, 2, true)}, true);
  EXPECT_EQ(verdict.status, kInterrupted);
  EXPECT_FALSE(verdict.cause);
}

TEST(Verdict, FailureWhileStoppingIsReported) {
  const Verdict verdict = judge({exited(0, 1, 1)}, {left(0, 1)}, true);
  EXPECT_EQ(verdict.status, kInterrupted);
  ASSERT_TRUE(verdict.cause);
  EXPECT_EQ(verdict.cause->message, "left");
}

TEST(Verdict, HasTheStatusOfARankWhoseEndWasNotSeen) {
  EXPECT_EQ(judge({}, {left(1, 1)}, false, kUsage).status, kUsage);
}

}  // namespace
}  // namespace phalanx
