#include "tools/launch/mpirun_notices.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

namespace phalanx {
namespace {

const std::string kRule = std::string(74, '-') + "\n";
const std::string kKilled =
    "prterun noticed that process rank 1 with PID 12970 on node a-host-of-long-name exited on\nsignal 9 (Killed).\n";
const std::string kExited =
    "prterun detected that one or more processes exited with non-zero status,\n"
    "thus causing the job to be terminated. The first process to do so was:\n\n"
    "   Process name: [prterun-vm-12974@1,3]\n"
    "   Exit code:    7\n";
const std::string kExitedOpenMpi4 =
    "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
    "the job to be terminated. The first process to do so was:\n\n"
    "  Process name: [[31337,1],0]\n"
    "  Exit code:    2\n";

TEST(MpirunNotices, AreKeptFromWhatRanksSay) {
  MpirunNotices notices;
  EXPECT_EQ(notices.feed("rank says\n" + kRule + "mpirun says\n" + kRule + "and ranks"), "rank says\n");
  EXPECT_EQ(notices.feed(" again\nand"), "and ranks again\n");
  EXPECT_EQ(notices.finish(), "and");
  EXPECT_EQ(notices.notices(), std::vector<std::string>{"mpirun says\n"});
}

TEST(MpirunNotices, MayComeInAnyPieces) {
  MpirunNotices notices;
  std::string passed;
  for (const char c : "one\n" + kRule + kKilled + kRule + "two\n") passed += notices.feed({&c, 1});
  EXPECT_EQ(passed, "one\ntwo\n");
  EXPECT_EQ(notices.notices(), std::vector<std::string>{kKilled});
}

TEST(MpirunNotices, ThatIsCutOffCounts) {
  MpirunNotices notices;
  notices.feed(kRule + "mpirun sa");
  EXPECT_EQ(notices.finish(), "");
  EXPECT_EQ(notices.notices(), std::vector<std::string>{"mpirun sa"});
}

TEST(MpirunNotices, TellHowARankEnded) {
  const auto ends = ends_in({"something else\n", kKilled, kExited, kExitedOpenMpi4});
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[0].rank, 1);
  EXPECT_EQ(ends[0].host, "a-host-of-long-name");
  EXPECT_EQ(ends[0].status, W_EXITCODE(0, SIGKILL));
  EXPECT_EQ(ends[1].rank, 3);
  EXPECT_EQ(ends[1].status, W_EXITCODE(7, 0));
  EXPECT_EQ(ends[2].rank, 0);
  EXPECT_EQ(ends[2].status, W_EXITCODE(2, 0));
}

}  // namespace
}  // namespace phalanx
