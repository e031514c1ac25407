#include "tools/launch/log_tail.h"

#include <gtest/gtest.h>

#include <fstream>

namespace phalanx {
namespace {

using Lines = std::vector<std::string>;

std::string file_with(const std::string& text) {
  const std::string path = ::testing::TempDir() + "log_tail_test.log";
  std::ofstream(path) << text;
  return path;
}

TEST(LogTail, GivesTheLastLines) { EXPECT_EQ(last_lines(file_with("a\nb\n\nc\n"), 2), (Lines{"b", "c"})); }

TEST(LogTail, LastLineMayLackItsEnd) { EXPECT_EQ(last_lines(file_with("a\nb"), 10), (Lines{"a", "b"})); }

TEST(LogTail, OfALongFileReadsTheEndOnly) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(last_lines(file_with(text), 2), (Lines{"line 99998", "line 99999"}));
}

TEST(LogTail, NoFileHasNone) { EXPECT_TRUE(last_lines("/no/such/file", 10).empty()); }

}  // namespace
}  // namespace phalanx
