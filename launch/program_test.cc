// SPDX-License-Identifier: Apache-2.0
#include "launch/program.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

struct Outcome {
  int status;
  std::string output;
};

Outcome run(const std::function<int()>& program) {
  ::testing::internal::CaptureStderr();
  const int status = run_main(program);
  return {status, ::testing::internal::GetCapturedStderr()};
}

TEST(RunMain, GivesTheProgramsResult) {
  const Outcome outcome = run([] { return 42; });
  EXPECT_EQ(outcome.status, 42);
  EXPECT_EQ(outcome.output, "");
}

TEST(RunMain, PrintsTheErrorThatWasThrown) {
  const Outcome usage = run([]() -> int { throw ConfigError("no such key"); });
  EXPECT_EQ(usage.status, kUsage);
  EXPECT_EQ(usage.output, "no such key\n");
  const Outcome failed = run([]() -> int { throw std::runtime_error("disk is full"); });
  EXPECT_EQ(failed.status, kFailed);
  EXPECT_EQ(failed.output, "disk is full\n");
}

TEST(RunMain, PrintsErrorsOfTheLaunchersEnvironment) {
  ::setenv("RANK", "first", 1);
  const Outcome outcome = run([]() -> int { throw ConfigError("RANK is no number"); });
  ::unsetenv("RANK");
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_EQ(outcome.output, "RANK is no number\n");
}

TEST(RunMain, GoesToWhereBazelRunWasCalled) {
  const testing::Scratch scratch;
  const auto before = std::filesystem::current_path();
  ::setenv("BUILD_WORKING_DIRECTORY", scratch.folder().c_str(), 1);
  const Outcome outcome = run([&] { return std::filesystem::equivalent(".", scratch.folder()) ? 7 : 8; });
  ::setenv("BUILD_WORKING_DIRECTORY", scratch.path("absent").c_str(), 1);
  const Outcome lost = run([] { return 0; });
  ::unsetenv("BUILD_WORKING_DIRECTORY");
  std::filesystem::current_path(before);
  EXPECT_EQ(outcome.status, 7);
  EXPECT_EQ(lost.status, kUsage);
  EXPECT_EQ(lost.output, "cannot change to folder " + scratch.path("absent") + "\n");
}

// The time when the program was loaded.
const auto loaded = std::chrono::steady_clock::now();

TEST(ProcessStart, IsBeforeTheProgramIsLoadedAndDoesNotChange) {
  const auto first = process_start();
  EXPECT_LT(first, loaded + std::chrono::milliseconds(10));
  EXPECT_GT(first, loaded - std::chrono::seconds(30));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto difference = process_start() - first;
  EXPECT_LT(difference, std::chrono::milliseconds(150)) << "it would move by 300 with the clock";
  EXPECT_GT(difference, std::chrono::milliseconds(-150));
}

TEST(ProcessStart, DoesNotCountABuildBeforeTheProgram) {
  ::setenv("BUILD_WORKING_DIRECTORY", ".", 1);
  const auto start = process_start();
  ::unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_GT(start, process_start()) << "the process is older than its program";
  EXPECT_LT(start, loaded + std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace phalanx
