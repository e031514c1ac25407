// SPDX-License-Identifier: Apache-2.0
#include "framework/base/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace phalanx {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  const std::string text = "layer.0/Größe → 重み 😀\n\tsecond line";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable_with_style(text), text);
}

TEST(Printable, EscapesTerminalControlSequences) {
  EXPECT_EQ(printable("w\033]0;title\a"), "w\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\rb\bc\x7f"), "a\\x0db\\x08c\\x7f");
  EXPECT_EQ(printable("\033[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("\u009b2J"), "\\u009b2J") << "the same in one character";
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Printable, EscapesWhatReversesTheDirection) { EXPECT_EQ(printable("a\u202eb"), "a\\u202eb"); }

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J")
      << "an escape of terminals of eight bits";
  EXPECT_EQ(printable("Gr\xf6\xdf"
                      "e"),
            "Gr\\xf6\\xdfe");
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a") << "an overlong line feed";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut";
}

TEST(Printable, KeepsOurOwnStyle) {
  const std::string progress = "\r\033[K\033[1mepoch 1\033[0m\033[2A\r\033[J";
  EXPECT_EQ(printable_with_style(progress), progress);
  EXPECT_EQ(printable_with_style("\xe2\x82"), "\xe2\x82") << "the rest follows";
}

TEST(Printable, EscapesOtherSequencesNextToStyle) {
  EXPECT_EQ(printable_with_style("\033]52;c;bHM=\a"), "\\x1b]52;c;bHM=\\x07");
  EXPECT_EQ(printable_with_style("\033[?1049h\033[6n\033P\u009b"), "\\x1b[?1049h\\x1b[6n\\x1bP\\u009b");
  EXPECT_EQ(printable_with_style("\033["), "\\x1b[");
}

}  // namespace
}  // namespace phalanx
