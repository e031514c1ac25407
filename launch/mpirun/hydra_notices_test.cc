// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/hydra_notices.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <string>
#include <vector>

namespace phalanx {
namespace {

const std::string kEqualSigns = std::string(83, '=') + "\n";
const std::string kMpichsBlock =
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 6251 RUNNING AT vm\n=   EXIT CODE: 9\n"
    "=   CLEANING UP REMAINING PROCESSES\n=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n";
const std::string kMpichsNotice =
    "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\nPID 6251 RUNNING AT vm\nEXIT CODE: 9\n";
const std::string kExitString = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n";
const std::string kAbort =
    "Abort(7) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 7) - process 1\n";

std::string block_of_intel(int rank, const std::string& signal) {
  return "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\nRANK " + std::to_string(rank) +
         " PID 6320 RUNNING AT node7\nKILLED BY SIGNAL: " + signal + "\n";
}

TEST(HydraNotices, AreSeparatedFromTheOutputOfRanksInAnyPieces) {
  const std::string text = "one\n" + kEqualSigns + kMpichsBlock + kEqualSigns + kExitString +
                           "== two ==\n[mpiexec@vm] Press Ctrl-C\n" +
                           "[proxy:0@vm] HYDU_create_process: execvp error\n" + kAbort + "Abort(3) is a chapter\nthree";
  HydraNotices notices;
  std::string passed;
  for (const char c : text) passed += notices.feed({&c, 1});
  passed += notices.finish();
  EXPECT_EQ(passed, "one\n== two ==\nAbort(3) is a chapter\nthree");
  EXPECT_EQ(notices.notices(), (std::vector<std::string>{kMpichsNotice, kExitString, "[mpiexec@vm] Press Ctrl-C\n",
                                                         "[proxy:0@vm] HYDU_create_process: execvp error\n", kAbort}));
}

TEST(HydraNotices, IncludeOneThatIsCutOff) {
  HydraNotices notices;
  notices.feed(kEqualSigns + "=   BAD TERM");
  EXPECT_EQ(notices.finish(), "");
  EXPECT_EQ(notices.notices(), std::vector<std::string>{"=   BAD TERM"});
}

TEST(HydraNotices, TellWhichRankAborted) {
  const auto ends = rank_ends_in_hydra({"something else\n", kAbort});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].rank, 1);
  EXPECT_EQ(ends[0].status, W_EXITCODE(7, 0));
}

TEST(HydraNotices, TellWhichRankWasKilledUnlessMpiexecKilledTheOthers) {
  const auto one = rank_ends_in_hydra({block_of_intel(3, "9 (Killed)")});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].rank, 3);
  EXPECT_EQ(one[0].host, "node7");
  EXPECT_EQ(one[0].status, W_EXITCODE(0, SIGKILL));
  const auto crashed =
      rank_ends_in_hydra({block_of_intel(0, "9 (Killed)"), block_of_intel(1, "11 (Segmentation fault)")});
  ASSERT_EQ(crashed.size(), 1u);
  EXPECT_EQ(crashed[0].rank, 1);
  EXPECT_EQ(crashed[0].status, W_EXITCODE(0, SIGSEGV));
  const auto both = rank_ends_in_hydra({block_of_intel(0, "9 (Killed)"), block_of_intel(1, "9 (Killed)")});
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both[0].rank, -1);
  EXPECT_EQ(both[0].status, W_EXITCODE(0, SIGKILL));
}

TEST(HydraNotices, TellThatARankWasKilledEvenIfMpichDoesNotSayWhich) {
  const auto ends = rank_ends_in_hydra({kMpichsNotice, kExitString});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].rank, -1);
  EXPECT_EQ(ends[0].status, W_EXITCODE(0, SIGKILL));
}

TEST(HydraNotices, DoNotHoldBackLinesThatGrow) {
  HydraNotices notices;
  EXPECT_EQ(notices.feed("step 1"), "step 1");
  EXPECT_EQ(notices.feed("\rstep 2 [mpiexec@"), "\rstep 2 [mpiexec@");
  EXPECT_EQ(notices.feed("\n=="), "\n");
  EXPECT_EQ(notices.feed(" title =="), "== title ==");
  EXPECT_EQ(notices.finish(), "");
}

}  // namespace
}  // namespace phalanx
