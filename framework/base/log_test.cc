// SPDX-License-Identifier: Apache-2.0
#include "framework/base/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

TEST(Log, CanPassItsLinesOn) {
  static std::string taken;
  pass_log_to([](LogLevel level, const std::source_location& where, std::string_view text) {
    taken += std::to_string(static_cast<int>(level)) + " " + std::to_string(where.line() > 0) + " " + std::string(text);
  });
  log_info() << "one " << 1;
  pass_log_to(nullptr);
  EXPECT_EQ(taken, "0 1 one 1");
}

// Counts how often it is formatted.
struct Counted {
  int& formatted;
  friend std::ostream& operator<<(std::ostream& out, const Counted& counted) { return ++counted.formatted, out; }
};

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { configure_log({}); }

  static std::vector<std::string> lines(const std::string& path) {
    std::vector<std::string> all;
    std::istringstream text(read_file(path));
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }

  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".log";
};

TEST_F(LogTest, LinesHaveTimeRankLevelAndPlace) {
  configure_log({.file = path_, .rank = 3});
  const int line = __LINE__ + 1;
  log_info() << "step " << 7;
  const std::regex expected(R"(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} rank 3 INFO \S*log_test\.cc:)" +
                            std::to_string(line) + ": step 7");
  ASSERT_EQ(lines(path_).size(), 1);
  EXPECT_TRUE(std::regex_match(lines(path_)[0], expected)) << lines(path_)[0];
}

TEST_F(LogTest, LinesContainNoEscapeSequences) {
  configure_log({.file = path_, .rank = 3});
  log_info() << "tensor w\033]0;title\a";
  ASSERT_EQ(lines(path_).size(), 1);
  EXPECT_TRUE(lines(path_)[0].ends_with("tensor w\\x1b]0;title\\x07")) << lines(path_)[0];
}

TEST_F(LogTest, OnlyWarningsAndErrorsReachStderr) {
  configure_log({.file = path_});
  testing::internal::CaptureStderr();
  log_info() << "quiet";
  log_warning() << "loud";
  log_error() << "louder";
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_EQ(shown.find("quiet"), shown.npos);
  EXPECT_NE(shown.find("WARNING"), shown.npos);
  EXPECT_NE(shown.find("louder"), shown.npos);
  EXPECT_EQ(lines(path_).size(), 3);
}

TEST_F(LogTest, StderrCanBeSilenced) {
  configure_log({.file = path_, .stderr_threshold = LogLevel::kNone});
  testing::internal::CaptureStderr();
  log_error() << "for the file only";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(lines(path_).size(), 1);
}

TEST_F(LogTest, WarnsOnStderrBeforeItIsConfigured) {
  testing::internal::CaptureStderr();
  log_info() << "early";
  log_warning() << "earlier";
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_EQ(shown.find("early"), shown.npos);
  EXPECT_NE(shown.find("earlier"), shown.npos);
  EXPECT_EQ(shown.find("rank"), shown.npos) << "no rank is known yet";
}

TEST_F(LogTest, DoesNotFormatLinesThatAreNotWritten) {
  int formatted = 0;
  log_info() << Counted{formatted};
  EXPECT_EQ(formatted, 0);
  configure_log({.file = path_});
  log_info() << Counted{formatted};
  EXPECT_EQ(formatted, 1);
}

TEST_F(LogTest, AFileThatCannotBeOpenedChangesNothing) {
  configure_log({.file = path_, .rank = 1});
  EXPECT_THROW(log_to_file(::testing::TempDir()), DataError);
  log_info() << "still here";
  EXPECT_EQ(lines(path_).size(), 1);
}

TEST_F(LogTest, LogToFileKeepsTheRank) {
  configure_log({.rank = 5});
  log_to_file(path_);
  log_info() << "x";
  EXPECT_NE(read_file(path_).find(" rank 5 INFO "), std::string::npos);
}

TEST_F(LogTest, ALineTheFileDoesNotTakeGoesToStderr) {
  configure_log({.file = "/dev/full", .stderr_threshold = LogLevel::kNone});
  testing::internal::CaptureStderr();
  log_info() << "no space left";
  EXPECT_NE(testing::internal::GetCapturedStderr().find("no space left"), std::string::npos);
}

TEST_F(LogTest, LinesOfManyThreadsStayWhole) {
  configure_log({.file = path_});
  constexpr int kThreads = 4, kLines = 250;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kLines; ++i) log_info() << std::string(100, static_cast<char>('a' + t)) << "|";
    });
  }
  for (auto& thread : threads) thread.join();
  const std::regex whole(R"(.*: (a{100}|b{100}|c{100}|d{100})\|)");
  int matching = 0;
  for (const auto& line : lines(path_)) matching += std::regex_match(line, whole);
  EXPECT_EQ(matching, kThreads * kLines);
}

// The launcher logs before it forks its ranks.
TEST_F(LogTest, AForkedChildLogsToItsOwnFile) {
  configure_log({.file = path_, .rank = 0});
  log_info() << "parent before";
  const std::string child_path = path_ + ".child";
  const pid_t child = ::fork();
  if (child == 0) {
    configure_log({.file = child_path, .rank = 1});
    log_info() << "child";
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  log_info() << "parent after";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lines(path_).size(), 2);
  ASSERT_EQ(lines(child_path).size(), 1);
  EXPECT_NE(lines(child_path)[0].find(" rank 1 INFO "), std::string::npos);
  std::filesystem::remove(child_path);
}

}  // namespace
}  // namespace phalanx
