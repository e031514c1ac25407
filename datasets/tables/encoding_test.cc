// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "datasets/testing/table.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::rows_of;
using testing::table_of;
using ::testing::ThrowsMessage;

TableEncoding fitted(const std::string& text, const EncodingConfig& config) {
  const auto table = table_of(text);
  return TableEncoding::fit(config, *table, rows_of(*table));
}

DenseSamples encoded(const TableEncoding& encoding, const std::string& text) {
  const auto table = table_of(text);
  return encoding.encode(*table, rows_of(*table));
}

DenseSamples samples(const std::string& text, const EncodingConfig& config) {
  return encoded(fitted(text, config), text);
}

template <class Error>
void refuses(const std::string& text, const EncodingConfig& config, const std::string& why) {
  EXPECT_THAT([&] { samples(text, config); }, ThrowsMessage<Error>(HasSubstr(why))) << text;
}

constexpr const char* kPeople = "name,age,sex,alive\nA,20,male,no\nB,30,female,yes\nC,,female,yes\nD,40,,no\n";

TEST(TableEncoding, TakesTheLastColumnAsTargetAndAllOthersAsInputs) {
  const auto some = samples("a,b,y\n1,2,3\n4,5,6\n", {});
  EXPECT_THAT(some.shape, ElementsAre(2));
  EXPECT_THAT(some.values, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(some.numbers, ElementsAre(3, 6));
}

TEST(TableEncoding, IgnoresNamesOfRows) {
  EXPECT_THAT(samples(",a,y\n7,1,2\n8,3,4\n", {}).values, ElementsAre(1, 3));
  EXPECT_THAT(samples(",a,y\n7,1,2\n8,3,4\n", {.inputs = {"unnamed_0"}, .target = "y"}).values, ElementsAre(7, 8));
}

TEST(TableEncoding, ChoosesColumnsByNameOrNumber) {
  const std::string text = "a,b,c,y\n1,2,3,4\n";
  EXPECT_THAT(samples(text, {.inputs = {"c", "a"}, .target = "b"}).values, ElementsAre(3, 1));
  EXPECT_THAT(samples(text, {.drop = {"y", "a"}}).numbers, ElementsAre(3)) << "the last one that is left";
  EXPECT_THAT(samples(text, {.target = "0"}).numbers, ElementsAre(1));
  EXPECT_THAT(samples("10,0\n1,2\n3,4\n", {.target = "0"}).numbers, ElementsAre(10, 1, 3)) << "without a header";
}

TEST(TableEncoding, FindsColumnsOfOtherTablesByName) {
  const auto encoding = fitted("a,b,y\n1,2,3\n", {});
  const auto some = encoded(encoding, "y,extra,b,a\n30,0,20,10\n");
  EXPECT_THAT(some.values, ElementsAre(10, 20));
  EXPECT_THAT(some.numbers, ElementsAre(30));
  EXPECT_THAT(
      [&] { encoded(encoding, "a,y\n1,2\n"); },
      ThrowsMessage<DataError>(HasSubstr("a.csv: has no column \"b\", which the training table has; its columns "
                                         "are a, y")));
}

TEST(TableEncoding, PredictsSeveralNumbers) {
  const auto some = samples("a,u,b,v\n1,2,3,4\n5,6,7,8\n", {.targets = {"v", "u"}});
  EXPECT_EQ(some.width, 2);
  EXPECT_THAT(some.values, ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(some.numbers, ElementsAre(4, 2, 8, 6));
}

TEST(TableEncoding, MakesClassesOfText) {
  const auto encoding = fitted("a,y\n1,b\n2,a\n3,b\n", {});
  EXPECT_EQ(encoding.classes(), 2);
  EXPECT_THAT(encoded(encoding, "a,y\n1,b\n2,a\n").classes, ElementsAre(1, 0));
  EXPECT_THAT([&] { encoded(encoding, "a,y\n1,c\n"); },
              ThrowsMessage<DataError>(HasSubstr("a.csv: line 2, column y: \"c\" is a category that no training row "
                                                 "has")));
}

TEST(TableEncoding, MakesClassesOfNumbersIfAskedTo) {
  const std::string text = "a,y\n1,10\n2,9\n3,-1\n";
  EXPECT_EQ(samples(text, {}).numbers.size(), 3U);
  const auto encoding = fitted(text, {.task = "classification"});
  EXPECT_THAT(encoded(encoding, text).classes, ElementsAre(2, 1, 0)) << "in the order of the numbers";
  EXPECT_THAT(encoded(encoding, "a,y\n1,9.0\n").classes, ElementsAre(1)) << "however they are written";
  EXPECT_THAT(samples("a,y\n1,0\n2,2\n", {.classes = 3}).classes, ElementsAre(0, 2));
  EXPECT_THAT(samples("a,y\n1,True\n2,FALSE\n", {}).classes, ElementsAre(1, 0));
}

TEST(TableEncoding, MakesAnInputOfEachCategory) {
  const std::string text = "size,ok,y\nsmall,true,1\nlarge,false,2\n";
  const auto encoding = fitted(text, {});
  EXPECT_THAT(encoding.features(), ElementsAre("size=large", "size=small", "ok"));
  EXPECT_THAT(encoded(encoding, text).values, ElementsAre(0, 1, 1, 1, 0, 0));
  EXPECT_THAT(samples("zip,y\n10,1\n9,2\n", {.columns = {{"zip", {.as = "category"}}}}).values,
              ElementsAre(0, 1, 1, 0));
}

TEST(TableEncoding, TakesNumbersAndTextTogetherAsCategoriesIfAskedTo) {
  EXPECT_THAT(samples("a,y\n1,1\nx,2\n", {.columns = {{"a", {.as = "category"}}}}).values, ElementsAre(1, 0, 0, 1));
}

TEST(TableEncoding, RefusesUnknownCategoriesUnlessTheyAreZeros) {
  const std::string train = "a,y\nu,1\nv,2\n", test = "a,y\nw,1\n";
  EXPECT_THAT([&] { encoded(fitted(train, {}), test); },
              ThrowsMessage<DataError>(HasSubstr("line 2, column a: \"w\" is a category that no training row has")));
  EXPECT_THAT(encoded(fitted(train, {.unknown = "zeros"}), test).values, ElementsAre(0, 0));
}

TEST(TableEncoding, RefusesMissingValuesByDefault) {
  refuses<DataError>(kPeople, {.drop = {"name"}},
                     "a.csv: line 4, column age: the value is missing; set dataset.missing");
  refuses<DataError>("a,y\n1,\n2,3\n", {.missing = "0"}, "line 2, column y: the target is missing");
}

TEST(TableEncoding, DropsRowsWithMissingValues) {
  const auto some = samples(kPeople, {.drop = {"name"}, .missing = "drop"});
  EXPECT_THAT(some.values, ElementsAre(20, 0, 1, 30, 1, 0));
  EXPECT_THAT(some.classes, ElementsAre(0, 1));
  EXPECT_THAT(samples("a,y\n1,\n2,3\n", {.columns = {{"y", {.missing = "drop"}}}}).values, ElementsAre(2));
}

TEST(TableEncoding, FillsMissingValuesFromTheTrainingRows) {
  const std::string train = "a,y\n1,0\n2,0\n6,0\n\"\",0\n", test = "a,y\n\"\",0\n100,0\n";
  EXPECT_THAT(encoded(fitted(train, {.missing = "mean"}), test).values, ElementsAre(3, 100));
  EXPECT_THAT(encoded(fitted(train, {.missing = "median"}), test).values, ElementsAre(2, 100));
  EXPECT_THAT(encoded(fitted(train, {.missing = "-1.5"}), test).values, ElementsAre(-1.5, 100));
  EXPECT_THAT(samples("a,y\n1,0\n3,0\n4,0\n9,0\nNA,0\n", {.missing = "median"}).values, ElementsAre(1, 3, 4, 9, 3.5));
  const auto both = samples(kPeople, {.inputs = {"age", "sex"}, .missing = "mean"});
  EXPECT_THAT(both.values, ElementsAre(20, 0, 1, 30, 1, 0, 30, 1, 0, 40, 1, 0)) << "the most frequent category";
}

TEST(TableEncoding, FillsEachColumnAsItsOwnRuleSays) {
  const EncodingConfig config{
      .inputs = {"age", "sex"},
      .columns = {{"age", {.missing = "0"}}, {"sex", {.missing = "unknown"}}},
  };
  EXPECT_THAT(fitted(kPeople, config).features(), ElementsAre("age", "sex=female", "sex=male", "sex=unknown"));
  EXPECT_THAT(samples(kPeople, config).values, ElementsAre(20, 0, 1, 0, 30, 1, 0, 0, 0, 1, 0, 0, 40, 0, 0, 1));
}

TEST(TableEncoding, AddsWhetherAValueIsMissing) {
  const auto encoding = fitted("a,b,y\n1,2,0\nNA,4,0\n", {.missing = "mean", .missing_indicator = true});
  EXPECT_THAT(encoding.features(), ElementsAre("a", "a is missing", "b"));
  EXPECT_THAT(encoded(encoding, "a,b,y\nNA,NA,0\n").values, ElementsAre(1, 1, 3));
}

TEST(TableEncoding, StandardizesByTheStatisticsOfTrainingRows) {
  // The mean is 3 and the population standard deviation 2; the scale of a constant column stays 1.
  const std::string train = "a,c,ok,y\n1,7,true,5\n5,7,false,6\n";
  const auto encoding = fitted(train, {.standardize = true});
  EXPECT_THAT(encoded(encoding, train).values, ElementsAre(-1, 0, 1, 1, 0, 0));
  const auto test = encoded(encoding, "a,c,ok,y\n9,8,true,5\n");
  EXPECT_THAT(test.values, ElementsAre(3, 1, 1));
  EXPECT_THAT(test.numbers, ElementsAre(5)) << "targets stay";
}

TEST(TableEncoding, StandardizesWithFilledValuesAndWithoutDroppedRows) {
  EXPECT_THAT(samples("a,y\n1,0\n5,0\nNA,0\nNA,0\n", {.missing = "9", .standardize = true}).values,
              Pointwise(FloatEq(), {-1.5075567F, -0.3015113F, 0.9045340F, 0.9045340F}));
  EXPECT_THAT(samples("a,b,y\n1,1,0\n5,1,0\n100,NA,0\n", {.missing = "drop", .standardize = true}).values,
              ElementsAre(-1, 0, 1, 0));
}

TEST(TableEncoding, IsTheSameAfterItWasSaved) {
  const EncodingConfig config{.drop = {"name"}, .missing = "mean", .missing_indicator = true, .standardize = true};
  const auto encoding = fitted(kPeople, config);
  const auto text = encoding.to_json();
  const auto read = TableEncoding::from_json(text, "dataset.json");
  EXPECT_EQ(read.to_json(), text);
  const std::string test = "alive,sex,age\nyes,,50.1\nno,male,\n";
  const auto before = encoded(encoding, test), after = encoded(read, test);
  EXPECT_EQ(before.values, after.values);
  EXPECT_THAT(after.classes, ElementsAre(1, 0));
}

TEST(TableEncoding, RefusesADamagedDocument) {
  auto text = fitted("a,y\nu,b\nv,a\n", {}).to_json();
  EXPECT_THAT([&] { TableEncoding::from_json("{\"version\": 2}", "dataset.json"); },
              ThrowsMessage<DataError>(HasSubstr("dataset.json: version: is not 1")));
  text.replace(text.find("\"classes\": 2"), 12, "\"classes\": 3");
  EXPECT_THAT([&] { TableEncoding::from_json(text, "dataset.json"); },
              ThrowsMessage<DataError>(HasSubstr("classes: does not suit the targets")));
}

TEST(TableEncoding, RefusesDatesWithAHint) {
  refuses<DataError>(
      "day,a,y\n2024-01-31,1,2\n", {},
      "line 2, column day: is a date, which has no meaning as a number; leave the column out (dataset.drop: "
      "[day])");
  EXPECT_THAT(samples("day,a,y\n2024-01-31,1,2\n", {.drop = {"day"}}).values, ElementsAre(1));
}

TEST(TableEncoding, RefusesTextWithTooManyCategories) {
  refuses<DataError>("a,y\nu,1\nv,2\nw,3\n", {.max_categories = 2},
                     "column a: has 3 different texts, more than dataset.max_categories: 2");
}

TEST(TableEncoding, RefusesConfigsThatDoNotSuitTheTable) {
  const std::string text = "age,kind,y\n1,u,0\n2,v,1\n";
  refuses<ConfigError>(text, {.target = "aeg"}, "dataset.target: \"aeg\" is not a column of");
  refuses<ConfigError>(text, {.target = "aeg"}, "did you mean age?");
  refuses<ConfigError>(text, {.drop = {"z9"}}, "its columns are age, kind, y");
  refuses<ConfigError>(text, {.inputs = {"age", "0"}}, "names the column \"0\" twice");
  refuses<ConfigError>(text, {.inputs = {"y"}}, "dataset.inputs: y is also the target");
  refuses<ConfigError>(text, {.target = "y", .targets = {"age"}}, "takes the place of dataset.target");
  refuses<ConfigError>(text, {.targets = {"age", "kind"}}, "several dataset.targets must be numbers");
  refuses<ConfigError>(text, {.target = "kind", .task = "regression"},
                       "has text, which cannot be a target of regression");
  refuses<ConfigError>(text, {.target = "kind", .classes = 3}, "has 2 classes in the training rows");
  refuses<ConfigError>("age,y\n1,0\n,1\n", {.missing = "middle"}, "\"middle\" is neither error, drop, mean nor median");
  refuses<ConfigError>("y\n1\n2\n", {}, "none is left for the inputs");
  refuses<DataError>(text, {.classes = 1}, "line 3, column y: class 1, expected 0 to 0 (dataset.classes)");
  refuses<DataError>("a,y\n1,0.5\n", {.classes = 3}, "class 0.5");
  refuses<DataError>("a,y\n,1\n", {.missing = "mean"}, "column a: has no value in the training rows");
  refuses<DataError>("a,y\n,1\n", {.missing = "drop"}, "no row is left, since each of them has a missing value");
}

TEST(TableEncoding, RefusesNumbersWhereTextIsAndTextWhereNumbersAre) {
  EXPECT_THAT([] { encoded(fitted("a,y\n1,2\n", {}), "a,y\nx,2\n"); },
              ThrowsMessage<DataError>(HasSubstr("line 2, column a: \"x\" is not a number")));
}

}  // namespace
}  // namespace phalanx
