// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/runtime.h"

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "framework/backends/mpi/testing/command.h"
#include "framework/base/error.h"
#include "framework/testing/fault.h"

namespace phalanx::mpi {
namespace {

using testing::Outcome;

const std::string kEnding = "framework/backends/mpi/ending";

// Launchers that do not tell MPI about the ranks.
const char* const kTorchrun =
    "RANK=2 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 ";
const char* const kSrun =
    "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_LOCALID=2 SLURM_NTASKS=4 SLURM_NNODES=1 ";

Outcome run_ranks(int ranks, const std::string& how, const std::string& options = "") {
  const std::string root = ::geteuid() == 0 ? " --allow-run-as-root" : "";
  return testing::run_command("HOME=/tmp " PHALANX_MPI_HOME "/bin/mpirun --oversubscribe --bind-to none" + root +
                              options + " -np " + std::to_string(ranks) + " " + kEnding + " " + how);
}

TEST(Runtime, EndsNormallyAlthoughOneRankIsLate) {
  const auto outcome = run_ranks(2, "late");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 0 ends"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 1 ends"), std::string::npos) << outcome.output;
}

TEST(Runtime, AnExceptionOfOneRankEndsTheJob) {
  const auto outcome = run_ranks(3, "throw");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("as told"), std::string::npos) << outcome.output;
  EXPECT_LT(outcome.seconds, 20) << outcome.output;  // the timeout of the peers is 60 s
}

// The rank fails before it ends by a signal, which mpirun tells the others of.
TEST(Runtime, WithUlfmTheOthersGoOnAfterAnExceptionOfOneRank) {
  const auto outcome = run_ranks(3, "survived", " --with-ft ulfm");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  for (const char* text : {"as told", "rank 2 has ended", "2 are left", "rank 0 ends", "rank 1 ends"}) {
    EXPECT_NE(outcome.output.find(text), std::string::npos) << text << " in " << outcome.output;
  }
  EXPECT_LT(outcome.seconds, 20) << outcome.output;
}

TEST(Runtime, WithUlfmRanksThatLoseNoneEndNormally) {
  const auto outcome = run_ranks(2, "late", " --with-ft ulfm");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 1 ends"), std::string::npos) << outcome.output;
  EXPECT_EQ(run_ranks(2, "seven", " --with-ft ulfm").status, 7);
}

// Expects a message that names the operation, its waiting time and the awaited rank. A later operation must fail at
// once with the same cause.
void expect_timeout(const std::string& how, const std::string& operation, const std::string& awaited) {
  const auto outcome = run_ranks(2, "'" + how + "'");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  const auto first = outcome.output.find(operation);
  ASSERT_NE(first, std::string::npos) << outcome.output;
  EXPECT_GE(testing::seconds_waited(outcome.output.substr(first)), 0.3) << outcome.output;
  EXPECT_NE(outcome.output.find("s for " + awaited, first), std::string::npos) << outcome.output;
  const auto waited = outcome.output.find("waited ", first);
  const auto cause = outcome.output.substr(waited, outcome.output.find('\n', waited) - waited);
  EXPECT_NE(outcome.output.find(cause, waited + 1), std::string::npos) << outcome.output;
  EXPECT_LT(outcome.seconds, 20) << outcome.output;
}

TEST(Runtime, AnAbsentRankIsATimeoutThatSaysWhatWaited) {
  expect_timeout("absent", "all_reduce #2 of world, rank 0 of 2: waited ", "ranks that did not come");
  expect_timeout("absent from a barrier", "barrier #2 of world, rank 0 of 2: waited ", "ranks that did not come");
  expect_timeout("absent from a user reduction", "all_reduce #2 of world, rank 0 of 2: ", "a message from rank 1");
}

TEST(Runtime, AnAbsentPeerIsATimeoutThatNamesIt) {
  expect_timeout("absent sender", "recv #2 of world, rank 0 of 2: waited ", "a message from rank 1, tag 7");
  expect_timeout("absent receiver", "send #2 of world, rank 0 of 2: waited ", "rank 1, tag 7, to receive it");
}

TEST(Runtime, TheJobEndsWithTheStatusOfItsRanks) { EXPECT_EQ(run_ranks(2, "seven").status, 7); }

TEST(Runtime, RunsAloneWithoutALauncherAndWithoutAHome) {
  const auto outcome = testing::run_command("env -u HOME " + kEnding + " well");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "rank 0 ends\n");
}

TEST(Runtime, LeavesNoSharedMemory) {
  const auto folder = ::testing::TempDir() + "runtime_test-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  ::setenv("OMPI_MCA_btl_sm_backing_directory", folder.c_str(), 1);  // separate from the segments of other tests
  testing::run_command("HOME=/tmp " + kEnding + " throw");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  for (const char* how : {"throw", "absent", "killed"}) {
    run_ranks(2, how);
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << how;
  }
  for (const char* launcher : {kTorchrun, kSrun}) {
    EXPECT_EQ(testing::run_command(launcher + kEnding + " well").status, 1);
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << launcher;
  }
  ::unsetenv("OMPI_MCA_btl_sm_backing_directory");
  std::filesystem::remove_all(folder);
}

TEST(Runtime, SaysWhatToDoWhenOnlySlurmKnowsOfTheOtherRanks) {
  const auto outcome = testing::run_command(kSrun + kEnding + " well");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("srun --mpi=pmix"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 2 of 4"), std::string::npos) << outcome.output;
}

TEST(Runtime, VersionsOfAllMpisAreShort) {
  EXPECT_EQ(short_version("Open MPI v5.0.6, package: Open MPI root@host, ident: 5.0.6"), "Open MPI v5.0.6");
  EXPECT_EQ(short_version("MPICH Version:      5.0.2\nMPICH Release date: Fri Sep 25\n"), "MPICH 5.0.2");
  EXPECT_EQ(short_version("Intel(R) MPI Library 2021.18.1 for Linux* OS\n"), "Intel(R) MPI Library 2021.18.1");
  EXPECT_EQ(short_version(""), "");
}

// Must be the last test, because it initializes MPI in this process.
TEST(Runtime, RefusesAHostApplicationsMpiWithTooFewThreads) {
  ::setenv("HOME", "/tmp", 0);
  ::setenv("OMPI_MCA_btl", "self", 1);  // without a launcher its shared memory would never be removed
  int provided = MPI_THREAD_MULTIPLE;
  ASSERT_EQ(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
  try {
    start({}, Seconds(1));
    EXPECT_EQ(provided, MPI_THREAD_MULTIPLE);  // an MPI may provide more than requested
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("MPI provides MPI_THREAD_SINGLE"), std::string::npos) << error.what();
  }
  MPI_Finalize();
}

}  // namespace
}  // namespace phalanx::mpi
