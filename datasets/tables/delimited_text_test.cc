// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/delimited_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Options = DelimitedText::Options;
using Row = std::vector<std::string>;

std::vector<Row> parse(const std::string& text, const Options& options = {}) {
  const DelimitedText parsed(text, options, "a.csv");
  std::vector<Row> rows(parsed.rows());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < parsed.fields(i); ++j) rows[i].emplace_back(parsed.field(i, j));
  }
  return rows;
}

TEST(DelimitedText, TakesSeparatorsLineBreaksAndDoubledQuotesInQuotes) {
  EXPECT_THAT(parse("a,\"b,\nc\"\n\"say \"\"hi\"\"\",2\n", {.separator = ","}),
              ElementsAre(Row{"a", "b,\nc"}, Row{"say \"hi\"", "2"}));
}

TEST(DelimitedText, EndsLinesWithAnyOfTheUsualBreaks) {
  const std::vector<Row> rows{{"1", "2"}, {"3", "4"}};
  for (const char* text : {"1,2\n3,4", "1,2\r\n3,4\r\n", "1,2\r3,4\r", "\n1,2\n\n3,4\n\n"}) {
    EXPECT_EQ(parse(text), rows) << text;
  }
}

TEST(DelimitedText, IgnoresSpacesAroundFieldsAndKeepsEmptyOnes) {
  EXPECT_THAT(parse(" 1 ,, 2\t,\n", {.separator = ","}), ElementsAre(Row{"1", "", "2", ""}));
  EXPECT_THAT(parse("\t2\n\t\n", {.separator = "tab"}), ElementsAre(Row{"", "2"}, Row{"", ""}));
}

TEST(DelimitedText, FindsTheSeparator) {
  const std::vector<Row> rows{{"a", "b"}, {"1", "2"}};
  for (const char* text :
       {"a,b\n1,2\n", "a;b\n1;2\n", "a\tb\n1\t2\n", "a|b\n1|2\n", "a b\n1   2\n", " a \t b \n1 2 \n"}) {
    EXPECT_EQ(parse(text), rows) << text;
  }
  EXPECT_THAT(parse("a;b\n1,5;2\n"), ElementsAre(Row{"a", "b"}, Row{"1,5", "2"}))
      << "the same number of fields in each line";
  EXPECT_THAT(parse("1,5;2,5\n", {.decimal = ','}), ElementsAre(Row{"1,5", "2,5"}));
  EXPECT_THAT(parse("x\n\"a, b\"\n"), ElementsAre(Row{"x"}, Row{"a, b"})) << "one column";
  EXPECT_THAT(parse("x,y\n\"a;b\",1\n\"c;d\",2\n")[1], ElementsAre("a;b", "1"));
}

TEST(DelimitedText, FindsTheSeparatorOfALongQuotedField) {
  std::string text = "x;y\n1;\"";
  for (int i = 0; i < 200; ++i) text += "line, of, text\n";
  EXPECT_EQ(parse(text + "\"\n2;z\n").size(), 3U);
}

TEST(DelimitedText, DividesByWhiteSpaceOutsideQuotes) {
  EXPECT_THAT(parse("  1.5   2\t \"ford  torino\"  \r\n3 4 x\n", {.separator = "whitespace"}),
              ElementsAre(Row{"1.5", "2", "ford  torino"}, Row{"3", "4", "x"}));
}

TEST(DelimitedText, SkipsLinesAndComments) {
  const std::string text = "Made by x, y, z\n\n# note\n1,2\n  # 3,4\n5,6#7\n";
  EXPECT_THAT(parse(text, {.comment = "#", .skip_lines = 1}), ElementsAre(Row{"1", "2"}, Row{"5", "6#7"}));
  EXPECT_THAT(parse("a,\"b\n# no comment\"\n", {.separator = ",", .comment = "#"}),
              ElementsAre(Row{"a", "b\n# no comment"}));
}

TEST(DelimitedText, ReportsTheLineOfEachRow) {
  const DelimitedText text("# c\na,b\n\n\"1\n2\",3\n4,5\n", {.separator = ",", .comment = "#"}, "");
  ASSERT_EQ(text.rows(), 3U);
  EXPECT_EQ(text.line(0), 2);
  EXPECT_EQ(text.line(1), 4);
  EXPECT_EQ(text.line(2), 6);
}

TEST(DelimitedText, SaysOnWhichLineQuotesAreWrong) {
  const auto refuses = [](const std::string& text, const std::string& why) {
    EXPECT_THAT([&] { parse(text, {.separator = ","}); }, ThrowsMessage<DataError>(HasSubstr(why))) << text;
  };
  refuses("a,b\n1,5'10\"\n", "a.csv: line 2: has a quotation mark inside a field");
  refuses("a,b\n1,\"x\"y\n", "a.csv: line 2: has a quotation mark inside a field");
  refuses("a,b\n1,2\n3,\"x\n4,5\n", "a.csv: line 3: opens a quoted field that never ends");
  EXPECT_THAT(parse("1,5'10\"\n", {.separator = ",", .quote = ""}), ElementsAre(Row{"1", "5'10\""}));
  EXPECT_THAT(parse("1,'x,y'\n", {.separator = ",", .quote = "'"}), ElementsAre(Row{"1", "x,y"}));
}

TEST(DelimitedText, RefusesInvalidOptions) {
  EXPECT_THAT([] { parse("1", {.separator = "ab"}); },
              ThrowsMessage<ConfigError>(HasSubstr("dataset.separator: \"ab\"")));
  EXPECT_THAT([] { parse("1", {.quote = "ab"}); }, ThrowsMessage<ConfigError>(HasSubstr("dataset.quote: \"ab\"")));
}

}  // namespace
}  // namespace phalanx
