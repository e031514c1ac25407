// SPDX-License-Identifier: Apache-2.0
// Tests how ranks end under the mpiexec that PHALANX_TEST_MPIEXEC names, and what they leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include "framework/backends/mpi/testing/command.h"
#include "framework/testing/fault.h"

namespace phalanx::mpi {
namespace {

using testing::Outcome;

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;

class AbiRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path given = std::getenv("PHALANX_TEST_MPIEXEC");
    if (given.filename() == "absent.txt") {
      std::ifstream reason(given);
      GTEST_SKIP() << std::string{std::istreambuf_iterator<char>(reason), {}};
    }
    mpiexec_ = fs::canonical(given);
  }

  Outcome run_ranks(int ranks, const std::string& how) const {
    return testing::run_command(mpiexec_.string() + " -n " + std::to_string(ranks) + " " + kEnding + " '" + how + "'");
  }

  // Expects a message that names the operation, its waiting time and the awaited rank.
  void expect_timeout(const std::string& how, const std::string& operation, const std::string& awaited) const {
    const auto outcome = run_ranks(2, how);
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    const auto first = outcome.output.find(operation);
    ASSERT_NE(first, std::string::npos) << outcome.output;
    EXPECT_GE(testing::seconds_waited(outcome.output.substr(first)), 0.3) << outcome.output;
    EXPECT_NE(outcome.output.find("s for " + awaited, first), std::string::npos) << outcome.output;
    EXPECT_LT(outcome.seconds, 20) << outcome.output;
  }

  static constexpr const char* kEnding = "framework/backends/mpi/ending_abi";
  fs::path mpiexec_;
};

TEST_F(AbiRuntime, EndsNormallyAlthoughOneRankIsLate) {
  const auto outcome = run_ranks(2, "late");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("rank 0 ends"), HasSubstr("rank 1 ends")));
}

TEST_F(AbiRuntime, AnExceptionOfOneRankEndsTheJobWithItsStatus) {
  const auto outcome = run_ranks(3, "throw");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("as told"));
  EXPECT_LT(outcome.seconds, 20) << outcome.output;  // the timeout of the peers is 60 s
  EXPECT_EQ(run_ranks(2, "seven").status, 7);
}

TEST_F(AbiRuntime, AnAbsentRankIsATimeoutThatSaysWhatWaited) {
  expect_timeout("absent", "all_reduce #2 of world, rank 0 of 2: waited ", "ranks that did not come");
  expect_timeout("absent sender", "recv #2 of world, rank 0 of 2: waited ", "a message from rank 1, tag 7");
}

TEST_F(AbiRuntime, RunsAloneWithoutALauncher) {
  const std::string home = "MPI_HOME=" + mpiexec_.parent_path().parent_path().string() + " ";
  const auto outcome = testing::run_command(home + kEnding + " well");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "rank 0 ends\n");
}

TEST_F(AbiRuntime, SaysWhatToDoWhenOnlyAnotherLauncherKnowsOfTheRanks) {
  const std::string home = "MPI_HOME=" + mpiexec_.parent_path().parent_path().string() + " ";
  const auto outcome = testing::run_command(home +
                                            "RANK=2 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 "
                                            "MASTER_PORT=29500 " +
                                            kEnding + " well");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("torchrun"), HasSubstr("rank 2 of 4"), HasSubstr("mpiexec of this MPI")));
}

TEST_F(AbiRuntime, SaysWhichMpiHasNoLibrary) {
  const auto elsewhere = fs::path(::testing::TempDir()) / ("old_mpi-" + std::to_string(::getpid()));
  fs::create_directories(elsewhere / "bin");
  fs::copy(mpiexec_, elsewhere / "bin" / mpiexec_.filename());
  for (const auto& file : fs::directory_iterator(mpiexec_.parent_path())) {
    const auto name = file.path().filename().string();
    if (name.starts_with("hydra_")) fs::copy(file.path(), elsewhere / "bin" / name);
  }
  const std::string command = (elsewhere / "bin" / mpiexec_.filename()).string() + " -n 2 " + kEnding + " well";
  const auto outcome = testing::run_command("env -u MPI_HOME -u I_MPI_ROOT -u LD_LIBRARY_PATH " + command);
  if (outcome.status == 0) GTEST_SKIP() << "the dynamic linker finds an MPI";
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr((elsewhere / "lib").string() + " (of the mpiexec that started this rank)"),
                    HasSubstr("MPICH has from version 5.0 on")));
  fs::remove_all(elsewhere);
}

std::set<std::string> segments() {
  std::set<std::string> names;
  for (const auto& file : fs::directory_iterator("/dev/shm")) {
    const auto name = file.path().filename().string();
    if (name.starts_with("mpich_shm_") || name.starts_with("Intel_MPI")) names.insert(name);
  }
  return names;
}

// Other programs that run MPI at the same time remove their segments soon.
TEST_F(AbiRuntime, LeavesNoSharedMemory) {
  const auto before = segments();
  for (const char* how : {"well", "throw", "absent", "killed"}) {
    run_ranks(2, how);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (const auto& name : segments()) {
      while (!before.contains(name) && fs::exists("/dev/shm/" + name)) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << how << " leaves " << name;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }
}

}  // namespace
}  // namespace phalanx::mpi
