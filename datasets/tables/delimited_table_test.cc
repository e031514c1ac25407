// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/delimited_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/testing/idx_files.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using testing::fresh_folder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class DelimitedTable : public ::testing::Test {
 protected:
  std::shared_ptr<const TableSource> read(const std::string& text, const DelimitedFormat& format = {},
                                          const TableSource* like = nullptr) {
    std::ofstream(path_, std::ios::binary) << text;
    return read_delimited_table(path_.string(), format, like);
  }

  void refuses(const std::string& text, const std::string& why, const DelimitedFormat& format = {}) {
    EXPECT_THAT([&] { read(text, format); }, ThrowsMessage<DataError>(HasSubstr(why))) << text;
  }

  const std::filesystem::path path_ = fresh_folder("delimited_table") / "a.csv";
};

TEST_F(DelimitedTable, HasTheNamesOfTheHeader) {
  EXPECT_THAT(read("\xef\xbb\xbfy,\"a b\"\r\n0,1\r\n")->names(), ElementsAre("y", "a b")) << "after a byte order mark";
  EXPECT_THAT(read("150,4,setosa\n5.1,3.5,0\n")->names(), ElementsAre("150", "4", "setosa"));
  EXPECT_THAT(read("a,b\nx,y\n")->names(), ElementsAre("a", "b")) << "of columns of text";
}

TEST_F(DelimitedTable, NumbersColumnsWithoutAHeader) {
  for (const char* text : {"0,1,2\n0,0.5,0\n", "5.1,setosa\n4.9,setosa\n", "NA,1\n2,3\n"}) {
    const auto table = read(text);
    EXPECT_EQ(table->rows(), 2) << text;
    EXPECT_EQ(table->names()[1], "1") << text;
    EXPECT_FALSE(table->has_names()) << text;
  }
}

TEST_F(DelimitedTable, HasAHeaderIfTheConfigSaysSo) {
  EXPECT_EQ(read("0,1\n2,3\n", {.header = "true"})->rows(), 1);
  EXPECT_EQ(read("a,b\nc,d\n", {.header = "false"})->rows(), 2);
}

TEST_F(DelimitedTable, RecognizesRowNamesAsRWritesThem) {
  const auto written = read("\"\",\"x\",\"y\"\n\"1\",5,\"u\"\n\"2\",6,\"v\"\n");
  EXPECT_THAT(written->names(), ElementsAre("unnamed_0", "x", "y"));
  EXPECT_EQ(written->row_names(), 0);
  const auto shorter = read("\"x\" \"y\"\n\"1\" 5 \"u\"\n\"2\" 6 \"v\"\n");
  EXPECT_THAT(shorter->names(), ElementsAre("unnamed_0", "x", "y"));
  EXPECT_EQ(shorter->row_names(), 0);
  EXPECT_THAT(shorter->numbers(1), ElementsAre(5, 6));
}

TEST_F(DelimitedTable, IgnoresAColumnThatOnlyEndsLines) {
  EXPECT_EQ(read("x,y,\n1,2,\n")->row_names(), 2);
  const auto table = read("x,y\n1,2,\n3,4,\n");
  EXPECT_EQ(table->row_names(), 2);
  EXPECT_THAT(table->numbers(0), ElementsAre(1, 3));
}

TEST_F(DelimitedTable, TakesNamesOfTheTrainingTable) {
  const auto train = read("a,b\n1,2\n");
  const auto test = read("3,4\n", {}, train.get());
  EXPECT_THAT(test->names(), ElementsAre("a", "b"));
  EXPECT_THAT(read("3,4,5\n", {}, train.get())->names(), ElementsAre("0", "1", "2")) << "another number of columns";
}

TEST_F(DelimitedTable, InfersTypes) {
  const auto table = read("a,b,c,d,e,f\n1,true,x,2024-01-31,,\"1.5\"\n-2e3,FALSE,true,2024-02-01,NA,inf\n");
  EXPECT_EQ(table->type_of(0), ValueType::kNumber);
  EXPECT_EQ(table->type_of(1), ValueType::kBoolean);
  EXPECT_EQ(table->type_of(2), ValueType::kText);
  EXPECT_EQ(table->type_of(3), ValueType::kDate);
  EXPECT_EQ(table->type_of(4), ValueType::kNumber) << "without a value";
  EXPECT_EQ(table->type_of(5), ValueType::kNumber) << "in quotes";
  EXPECT_THAT(table->numbers(1), ElementsAre(1, 0));
  EXPECT_TRUE(std::isnan(table->numbers(4)[1]));
}

TEST_F(DelimitedTable, ReadsNumbers) {
  EXPECT_THAT(read("x\n+4\n-3e1\n.5\n1e-400\n")->numbers(0), ElementsAre(4, -30, 0.5, 0));
  EXPECT_THAT(read("x;y\n1,5;2\n", {.decimal = ","})->numbers(0), ElementsAre(1.5));
  EXPECT_THAT([&] { read("x;y\n1.5;2\n", {.decimal = ","})->numbers(0); },
              ThrowsMessage<DataError>(HasSubstr("\"1.5\" is not a number")));
}

TEST_F(DelimitedTable, ReadsNumbersWithGroupsOfThreeDigits) {
  EXPECT_THAT(read("x;y\n1,234,567.25;1\n-12,000;2\n+999;3\n1,000e3;4\n", {.thousands = ","})->numbers(0),
              ElementsAre(1234567.25, -12000, 999, 1e6));
  EXPECT_THAT(read("x;y\n1.234,5;1\n", {.decimal = ",", .thousands = "."})->numbers(0), ElementsAre(1234.5));
  for (const char* text : {"1,23", "12,3456", "1234,567", ",123", "1,,234", "1,234,", "1.5,000", "1,2a4"}) {
    EXPECT_THAT([&] { read(std::string("x;y\n") + text + ";1\n", {.thousands = ","})->numbers(0); },
                ThrowsMessage<DataError>(HasSubstr("is not a number")))
        << text;
  }
}

TEST_F(DelimitedTable, RefusesNumbersThatAreNotFiniteInSamples) {
  for (const char* number : {"1e39", "-1e39", "1e400", "inf", "-Infinity", "NAN"}) {
    EXPECT_THAT([&] { read(std::string("a,b\n1,2\n1,") + number + "\n")->numbers(1); },
                ThrowsMessage<DataError>(HasSubstr("line 3, column b: \"" + std::string(number) + "\": ")));
  }
  EXPECT_THAT(read("a\n3.4028235e38\n")->numbers(0), ElementsAre(3.4028235e38));
}

TEST_F(DelimitedTable, RefusesColumnsOfNumbersAndText) {
  EXPECT_THAT([&] { read("a,b\n1,2\n3,?\n")->type_of(1); },
              ThrowsMessage<DataError>(HasSubstr("a.csv: line 3, column b: \"?\" is not a number, but the column has "
                                                 "numbers, such as \"2\"; if it means that the value is missing, add "
                                                 "it to dataset.missing_values")));
  EXPECT_EQ(read("a,b\n1,2\n3,?\n", {.missing_values = {"?"}})->type_of(1), ValueType::kNumber);
}

TEST_F(DelimitedTable, ReadsTextOnce) {
  const auto texts = read("a,b\nx,1\n,2\ny,3\nx,4\n")->texts(0);
  EXPECT_THAT(texts.values, ElementsAre("x", "y"));
  EXPECT_THAT(texts.codes, ElementsAre(0, -1, 1, 0));
}

TEST_F(DelimitedTable, SaysWhatIsWrongWhere) {
  refuses("", "a.csv: has no rows");
  refuses("a,b\n", "a.csv: has a header, but no rows below it");
  refuses("a,b\n1,2\n3\n4,5\n", "a.csv: line 3: has 1 fields, and most lines have 2");
  refuses("a,b\n1,2\n3,4\n5\n", "a.csv: line 4: has 1 fields, and most lines have 2");
  refuses("a,a\n1,2\n", "a.csv: line 1: two columns are named \"a\"");
  refuses(std::string("a,b\n1,\0\n", 8), "byte 6: is not UTF-8 text");
  refuses("a,b\n1,caf\xe9\n", "byte 9: is not UTF-8 text; convert it, as from Latin-1: iconv");
  refuses(std::string("\xff\xfe"
                      "a\0",
                      4),
          "is UTF-16 text");
  EXPECT_THAT([&] { read_delimited_table((path_.parent_path() / "none.csv").string(), {}); },
              ThrowsMessage<DataError>(HasSubstr("none.csv: no such file")));
}

TEST_F(DelimitedTable, DecompressesGzip) {
  const std::string_view text = "a,b\n1,2\n";
  testing::write_gzip(path_, {text.begin(), text.end()});
  EXPECT_THAT(read_delimited_table(path_.string(), {})->numbers(1), ElementsAre(2));
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 4);
  EXPECT_THAT([&] { read_delimited_table(path_.string(), {}); },
              ThrowsMessage<DataError>(HasSubstr("a.csv: byte 8: the compressed stream is truncated")));
}

TEST(IsDate, DistinguishesDatesFromNumbersAndWords) {
  for (const char* date : {"2024-01-31", "2024/1/3", "2024-01-31T12:00:00Z", "2024-01-31 12:00:00+02:00", "1/31/2024",
                           "31.1.24", "Jan 1 2000", "1 January 2000", "01-Sep-2003", "Mar 3, 1999", "12:30:59"}) {
    EXPECT_TRUE(is_date(date)) << date;
  }
  for (const char* text : {"", "2024", "1.5.7.9", "maybe 1", "3-1", "10-20-30-40", "1/31", "north"}) {
    EXPECT_FALSE(is_date(text)) << text;
  }
}

}  // namespace
}  // namespace phalanx
