// SPDX-License-Identifier: Apache-2.0
#include "launch/start_ranks.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using testing::becomes_true;
using testing::Scratch;
using testing::text_of;

struct Outcome {
  int status;
  std::string output;
};

Outcome start(const RankStart& what, const std::function<int(const LaunchEnvironment&)>& body) {
  ::testing::internal::CaptureStderr();
  const int status = start_ranks(what, body);
  return {status, ::testing::internal::GetCapturedStderr()};
}

void leave_mark(const std::string& folder, const LaunchEnvironment& launched) {
  std::ofstream(folder + "/rank" + std::to_string(launched.rank_info.rank))
      << launched.launcher << ' ' << launched.rank_info.size;
}

TEST(StartRanks, ForksThem) {
  const Scratch scratch;
  const Outcome outcome = start({.ranks = 3}, [&](const LaunchEnvironment& launched) {
    leave_mark(scratch.folder(), launched);
    return kDone;
  });
  EXPECT_EQ(outcome.status, kDone) << outcome.output;
  for (const char* rank : {"rank0", "rank1", "rank2"}) EXPECT_EQ(text_of(scratch.path(rank)), "local 3");
}

TEST(StartRanks, ReportsTheFailureOfOne) {
  const Outcome outcome = start({.ranks = 2}, [](const LaunchEnvironment& launched) {
    if (launched.rank_info.rank == 1) throw std::runtime_error("out of paper");
    return kDone;
  });
  EXPECT_EQ(outcome.status, kFailed);
  EXPECT_NE(outcome.output.find("Rank 1 of 2"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("out of paper"), std::string::npos) << outcome.output;
}

// mpirun starts this test program as each rank.
TEST(StartRanks, StartsItsOwnProgramByMpirun) {
  const auto given = environment("PHALANX_START_RANKS_TEST");
  std::optional<Scratch> scratch;
  if (!given) ::setenv("PHALANX_START_RANKS_TEST", scratch.emplace().folder().c_str(), 1);
  const RankStart two{
      .ranks = 2, .with_mpirun = true, .command = {"any", "--gtest_filter=StartRanks.StartsItsOwnProgramByMpirun"}};
  const int status = start_ranks(two, [&](const LaunchEnvironment& launched) -> int {
    leave_mark(*given, launched);
    if (launched.rank_info.rank == 0) return kDone;
    becomes_true([&] { return text_of(*given + "/rank0") == "mpirun 2"; });  // mpirun ends it with rank 1
    throw ConfigError("rank 1 disagrees");
  });
  if (given) ::exit(status);  // this process is a rank
  ::unsetenv("PHALANX_START_RANKS_TEST");
  EXPECT_EQ(status, kUsage);
  for (const char* rank : {"rank0", "rank1"}) EXPECT_EQ(text_of(scratch->path(rank)), "mpirun 2");
}

TEST(StartRanks, RunsAsARankIfAnotherLauncherStartedThisProcess) {
  const char* const variables[][2] = {{"RANK", "0"},
                                      {"WORLD_SIZE", "1"},
                                      {"LOCAL_RANK", "0"},
                                      {"LOCAL_WORLD_SIZE", "1"},
                                      {"MASTER_ADDR", "127.0.0.1"},
                                      {"MASTER_PORT", "1"}};
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  const auto ten_and_size = [](const LaunchEnvironment& launched) { return 10 + launched.rank_info.size; };
  EXPECT_EQ(start_ranks({.ranks = 5}, ten_and_size), 11);
  EXPECT_THROW(start_ranks({}, [](const LaunchEnvironment&) -> int { throw DataError("short"); }), DataError);
  for (const auto& [name, value] : variables) ::unsetenv(name);
}

}  // namespace
}  // namespace phalanx
