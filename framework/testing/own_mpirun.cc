// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/own_mpirun.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "framework/testing/scratch.h"

namespace phalanx::testing {
namespace {

namespace fs = std::filesystem;

// Set for the ranks: the number of the call that they are started for, and a folder for files about them.
constexpr const char* kCall = "PHALANX_TEST_CALL";
constexpr const char* kFolder = "PHALANX_TEST_FOLDER";

// The time in which the others receive what a rank has sent last, before they learn that it has ended.
constexpr std::chrono::milliseconds kLastWords{200};

// Keeps the status with which a rank has ended. mpirun tells the other ranks of an end by a signal, and of one with
// status 0 without MPI_Finalize, but of no other.
constexpr const char* kRankScript =
    R"('"$@"; status=$?; echo $status > "$PHALANX_TEST_FOLDER/status.$OMPI_COMM_WORLD_RANK"; )"
    R"(if [ $status -ge 128 ]; then kill -KILL $$; fi; exit 0')";

std::string name_of_test() {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(test->test_suite_name()) + "." + test->name();
}

// Returns the number of this call in the current test, from 1.
int number_of_call() {
  static std::string last_test;
  static int calls = 0;
  if (name_of_test() != last_test) calls = 0;
  last_test = name_of_test();
  return ++calls;
}

std::string text_of(const fs::path& file) {
  std::ifstream text(file);
  return {std::istreambuf_iterator<char>(text), {}};
}

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

// The ranks write no report, and are not told that the tests are divided among processes.
std::string mpirun_command(int ranks, int call, const fs::path& folder) {
  const char* const mpirun = std::getenv("PHALANX_TEST_MPIRUN");
  std::string command = "env -u XML_OUTPUT_FILE -u TEST_TOTAL_SHARDS -u TEST_SHARD_INDEX -u TEST_SHARD_STATUS_FILE ";
  command += std::string(kCall) + "=" + std::to_string(call) + " " + kFolder + "=" + quoted(folder) +
             " HOME=\"${HOME:-/tmp}\" timeout --kill-after=5 120 ";
  command += quoted(fs::canonical(mpirun != nullptr ? mpirun : "PHALANX_TEST_MPIRUN is not set"));
  command += " --with-ft ulfm --oversubscribe --bind-to none";
  if (::geteuid() == 0) command += " --allow-run-as-root";
  command += " -np " + std::to_string(ranks) + " sh -c " + kRankScript + " sh " +
             quoted(fs::canonical("/proc/self/exe")) + " --gtest_brief=1 --gtest_filter=" + name_of_test();
  return command + " > " + quoted(folder / "output") + " 2>&1";
}

bool ended_well(const fs::path& folder, int rank) {
  const std::string status = text_of(folder / ("status." + std::to_string(rank)));
  return fs::exists(folder / ("called." + std::to_string(rank))) && (status == "0\n" || status == "137\n");
}

[[noreturn]] void run_and_end(const std::function<void()>& rank) {
  std::ofstream(fs::path(std::getenv(kFolder)) / ("called." + std::string(std::getenv("OMPI_COMM_WORLD_RANK"))));
  rank();
  std::fflush(nullptr);
  std::this_thread::sleep_for(kLastWords);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

void run_under_own_mpirun(int ranks, const std::function<void()>& rank) {
  const int call = number_of_call();
  if (const char* const wanted = std::getenv(kCall)) {
    if (std::to_string(call) == wanted) run_and_end(rank);
    return;
  }
  const Scratch folder;
  const int status = std::system(mpirun_command(ranks, call, folder.folder()).c_str());
  for (int i = 0; i < ranks; ++i) {
    EXPECT_TRUE(ended_well(folder.folder(), i))
        << "rank " << i << " of " << ranks << " has failed, with status "
        << text_of(folder.path("status." + std::to_string(i))) << "\nmpirun: " << status << "\n"
        << text_of(folder.path("output"));
  }
}

}  // namespace phalanx::testing
