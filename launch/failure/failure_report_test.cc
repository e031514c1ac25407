// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/failure_report.h"

#include <gtest/gtest.h>

#include <fstream>

namespace phalanx {
namespace {

TEST(Frame, SaysAllThatIsKnown) {
  const Failure failure = {
      .rank = 1, .host = "node7", .log = "runs/mnist/logs/rank1.log", .message = "loss is not finite in step 120"};
  EXPECT_EQ(frame(failure, {.ranks = 4, .others = 3, .columns = 50}),
            "┌─ Rank 1 of 4 on node7 failed ───────────────────\n"
            "│ loss is not finite in step 120\n"
            "│\n"
            "│ Log: runs/mnist/logs/rank1.log\n"
            "│ 3 other ranks ended with it.\n"
            "└─────────────────────────────────────────────────\n");
}

TEST(Frame, ShowsTheLogsEnd) {
  const Failure failure = {.rank = 0, .message = "It was killed."};
  EXPECT_EQ(frame(failure, {.others = 1, .last_lines = {"step 1", "step 2"}, .columns = 30}),
            "┌─ Rank 0 failed ─────────────\n"
            "│ It was killed.\n"
            "│\n"
            "│ Last lines of its log:\n"
            "│   step 1\n"
            "│   step 2\n"
            "│\n"
            "│ 1 other rank ended with it.\n"
            "└─────────────────────────────\n");
}

TEST(Frame, BreaksBetweenWordsAndKeepsPathsWhole) {
  const Failure failure = {.rank = -1, .message = "cannot open /a/path/longer/than/a/line of the frame\n  indented"};
  EXPECT_EQ(frame(failure, {.columns = 24}),
            "┌─ The job failed ──────\n"
            "│ cannot open\n"
            "│ /a/path/longer/than/a/line\n"
            "│ of the frame\n"
            "│   indented\n"
            "└───────────────────────\n");
}

TEST(Frame, RemovesTerminalControlCharacters) {
  const Failure failure = {.rank = 0, .message = "\x1b[31mred\x1b[0m\r\ttab\a"};
  EXPECT_NE(frame(failure).find("│ red tab\n"), std::string::npos) << frame(failure);
}

TEST(Frame, WithoutMessageSaysSo) { EXPECT_NE(frame({.rank = 0}).find("It gave no reason."), std::string::npos); }

using Lines = std::vector<std::string>;

std::string file_with(const std::string& text) {
  const std::string path = ::testing::TempDir() + "log_tail_test.log";
  std::ofstream(path) << text;
  return path;
}

TEST(LogTail, GivesTheLastLines) { EXPECT_EQ(last_lines(file_with("a\nb\n\nc\n"), 2), (Lines{"b", "c"})); }

TEST(LogTail, LastLineMayLackItsEnd) { EXPECT_EQ(last_lines(file_with("a\nb"), 10), (Lines{"a", "b"})); }

TEST(LogTail, ReadsOnlyTheEndOfALongFile) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(last_lines(file_with(text), 2), (Lines{"line 99998", "line 99999"}));
}

TEST(LogTail, IsEmptyWithoutAFile) { EXPECT_TRUE(last_lines("/no/such/file", 10).empty()); }

}  // namespace
}  // namespace phalanx
