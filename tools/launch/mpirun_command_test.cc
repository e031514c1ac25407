#include "tools/launch/mpirun_command.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace phalanx {
namespace {

using Words = std::vector<std::string>;

TEST(MpirunCommand, OnThisHost) {
  EXPECT_EQ(mpirun_command("/mpi/bin/mpirun", {.ranks = 3, .command = {"train", "--config", "a b"}}, {"A=1"}, false),
            (Words{"/mpi/bin/mpirun", "--oversubscribe", "--bind-to", "none", "-np", "3", "train", "--config", "a b"}));
}

TEST(MpirunCommand, OnSeveralHostsAsRootWithVariables) {
  const MpiLaunch options = {.ranks = 4, .hosts = {"n1:2", "n2:2"}, .command = {"train"}};
  EXPECT_EQ(mpirun_command("mpirun", options, {"A=1", "PHALANX_DATA=/data", "PHALANX_LAUNCHER=mpi"}, true),
            (Words{"mpirun", "--oversubscribe", "--bind-to", "none", "-np", "4", "--allow-run-as-root", "--host",
                   "n1:2,n2:2", "-x", "PHALANX_DATA", "-x", "PHALANX_LAUNCHER", "train"}));
}

TEST(MpirunEnvironment, KeepsWhatIsThereAndAddsWhatIsMissing) {
  EXPECT_EQ(
      mpirun_environment({"PHALANX_LAUNCHER=x", "HOME=/home/ada"}, "file:///a/store", true),
      (Words{"HOME=/home/ada", "PHALANX_RENDEZVOUS=file:///a/store", "PHALANX_LAUNCHER=mpi", "PHALANX_TERMINAL=1"}));
  EXPECT_EQ(mpirun_environment({"PHALANX_RENDEZVOUS=file:///b/store"}, "", false),
            (Words{"PHALANX_LAUNCHER=mpi", "PHALANX_TERMINAL=0", "HOME=/tmp"}));
}

}  // namespace
}  // namespace phalanx
