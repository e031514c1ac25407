// SPDX-License-Identifier: Apache-2.0
#include "launch/job/end_command.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/base/console.h"
#include "framework/base/files.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;

class EndOfRun : public ::testing::Test {
 protected:
  /// Runs a shell command at the end of a run and returns what it left in the file "told".
  nlohmann::json told_at_end(const EndCommand& command, int status, const std::string& error = "") {
    run(command, status, error);
    return nlohmann::json::parse(read_file(scratch_.path("told")));
  }

  void run(const EndCommand& command, int status, const std::string& error = "") {
    ::testing::internal::CaptureStderr();
    command.run(status, error);
    standard_error().flush();
    complaint_ = ::testing::internal::GetCapturedStderr();
  }

  void write_summary(const std::string& text) const { std::ofstream(folder_.summary()) << text; }

  EndCommand command(const std::string& script) {
    watch_.on_end = script;
    return EndCommand(watch_, "quickstart", folder_);
  }

  EndCommand telling() { return command("cat > " + scratch_.path("told")); }

  testing::Scratch scratch_;
  RunFolder folder_{scratch_.folder()};
  WatchConfig watch_;
  std::string complaint_;
};

TEST_F(EndOfRun, TheCommandGetsTheSummary) {
  const auto command = telling();
  write_summary(R"({"name": "mine", "test": {"loss": 0.5}})");
  const auto told = told_at_end(command, 0);
  EXPECT_EQ(told.at("exit_status"), 0);
  EXPECT_EQ(told.at("run_folder"), folder_.path());
  EXPECT_EQ(told.at("name"), "mine");
  EXPECT_EQ(told.at("test").at("loss"), 0.5);
  EXPECT_FALSE(told.contains("error"));
  EXPECT_EQ(complaint_, "");
}

TEST_F(EndOfRun, ARunWithoutASummaryHasItsError) {
  const auto told = told_at_end(telling(), 1, "a \"quoted\"\nreason");
  EXPECT_EQ(told.at("exit_status"), 1);
  EXPECT_EQ(told.at("error"), "a \"quoted\"\nreason");
  EXPECT_EQ(told.at("name"), "quickstart");
}

TEST_F(EndOfRun, TheSummaryOfAnEarlierRunIsNotTold) {
  write_summary(R"({"test": {"loss": 0.5}})");
  const auto command = telling();
  EXPECT_FALSE(told_at_end(command, 3).contains("test"));
}

TEST_F(EndOfRun, ACommandThatDoesNotReadItIsNoProblem) {
  run(command("true"), 0);
  EXPECT_EQ(complaint_, "");
}

TEST_F(EndOfRun, NoCommandDoesNothing) {
  run(command(""), 0);
  EXPECT_EQ(complaint_, "");
}

TEST_F(EndOfRun, ACommandThatFailsIsReported) {
  run(command("exit 3"), 0);
  EXPECT_EQ(complaint_, "Warning: watch.on_end: \"exit 3\" ended with exit status 3; the run itself is not affected\n");
  run(command("kill -9 $$"), 0);
  EXPECT_THAT(complaint_, HasSubstr("was killed by signal 9; the run itself is not affected"));
  run(command("/no/such/program"), 0);
  EXPECT_THAT(complaint_, HasSubstr("\"/no/such/program\" ended with exit status 127"));
}

TEST_F(EndOfRun, ACommandThatHangsIsKilledWithItsChildren) {
  watch_.on_end_timeout = 0.2;
  const auto start = std::chrono::steady_clock::now();
  run(command("sh -c 'echo $$ > " + scratch_.path("pid") + "; sleep 100' | cat"), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_THAT(complaint_, HasSubstr("was killed because it did not end within 0.2 s"));
  const auto pid = std::atoi(testing::text_of(scratch_.path("pid")).c_str());
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(testing::becomes_true([&] { return !testing::is_running(pid); }));
}

TEST_F(EndOfRun, TheCommandKeepsNoFileOfTheRunOpen) {
  const std::ofstream open(scratch_.path("open"));
  run(command("ls -l /proc/self/fd > " + scratch_.path("told")), 0);
  EXPECT_THAT(read_file(scratch_.path("told")), ::testing::Not(HasSubstr(scratch_.path("open"))));
}

}  // namespace
}  // namespace phalanx
