// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/table_splits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "datasets/testing/table.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::table_of;
using ::testing::ThrowsMessage;

// Returns the first input of each sample.
std::vector<float> inputs_of(const Dataset& dataset) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  dataset.gather(all, 0, batch);
  const auto* values = batch.inputs[0].const_data_ptr<float>();
  const auto width = dataset.spec().inputs[0].shape[0];
  std::vector<float> inputs;
  for (std::int64_t i = 0; i < dataset.size(); ++i) inputs.push_back(values[i * width]);
  return inputs;
}

std::string hundred_rows() {
  std::string text = "x,y\n";
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + ",0\n";
  return text;
}

TEST(TableSplits, DrawRowsBySeed) {
  const auto table = table_of(hundred_rows());
  const auto splits = splits_of_table({}, {.test = 0.2, .validation = 0.1, .seed = 3}, table);
  const auto train = inputs_of(*splits.train), validation = inputs_of(*splits.validation),
             test = inputs_of(*splits.test);
  EXPECT_EQ(train.size(), 70U);
  EXPECT_EQ(validation.size(), 10U);
  EXPECT_EQ(test.size(), 20U);
  EXPECT_TRUE(std::ranges::is_sorted(test)) << "rows keep their order";
  auto all = train;
  all.insert(all.end(), validation.begin(), validation.end());
  all.insert(all.end(), test.begin(), test.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::unique(all).size(), 0U) << "each row is in one split";
  EXPECT_EQ(inputs_of(*splits_of_table({}, {.validation = 0.1, .seed = 3}, table).test), test);
  EXPECT_NE(inputs_of(*splits_of_table({}, {.validation = 0.1, .seed = 4}, table).test), test);
}

TEST(TableSplits, AreWhatAColumnSays) {
  const auto table = table_of("x,part,y\n1,train,0\n2,test,0\n3,validation,0\n4,train,0\n");
  const auto splits = splits_of_table({}, {.column = "part"}, table);
  EXPECT_THAT(inputs_of(*splits.train), ElementsAre(1, 4));
  EXPECT_THAT(inputs_of(*splits.validation), ElementsAre(3));
  EXPECT_THAT(inputs_of(*splits.test), ElementsAre(2));
  EXPECT_THAT(splits.train->spec().inputs[0].shape, ElementsAre(1)) << "the column is no input";
}

TEST(TableSplits, TakeStatisticsOfTrainingRowsAlone) {
  const auto table = table_of("x,part,y\n1,train,0\n5,train,0\n1000,test,0\n");
  const auto splits = splits_of_table({.standardize = true}, {.column = "part"}, table);
  EXPECT_THAT(inputs_of(*splits.train), ElementsAre(-1, 1));
  EXPECT_THAT(splits.fitted, HasSubstr("\"mean\": 3.0"));
}

TEST(TableSplits, AreRefusedWithoutRowsOrWithOtherWords) {
  const auto refuses = [](const std::string& text, const SplitConfig& split, const std::string& why) {
    EXPECT_THAT([&] { splits_of_table({}, split, table_of(text)); }, ThrowsMessage<Error>(HasSubstr(why)));
  };
  refuses("x,y\n1,0\n2,0\n", {.test = 0.1}, "dataset.split: the 2 rows of");
  refuses("x,y\n1,0\n2,0\n", {.test = 0.5, .validation = 0.5}, "leave a split without rows");
  refuses("x,p,y\n1,train,0\n2,dev,0\n", {.column = "p"}, "line 3, column p: \"dev\" is neither train, validation nor");
  refuses("x,p,y\n1,train,0\n", {.column = "p"}, "no row is for test");
  refuses("x,p,y\n1,train,0\n", {.column = "q"}, "dataset.split.column: \"q\" is not a column of");
}

TEST(TableSplits, MatchColumnsOfFilesByName) {
  const auto train = table_of("a,b,y\n1,2,3\n"), test = table_of("y,b,a\n6,5,4\n");
  const auto splits = splits_of_tables({}, train, nullptr, test);
  EXPECT_THAT(inputs_of(*splits.test), ElementsAre(4));
  EXPECT_EQ(splits.validation, nullptr);
}

TEST(TableSplits, TakeASavedEncodingInPlaceOfTheTrainingRows) {
  const auto train = table_of("a,y\n1,u\n3,v\n"), other = table_of("a,y\n100,v\n300,w\n");
  const auto fitted = splits_of_tables({.standardize = true}, train, nullptr, train).fitted;
  const auto path = testing::fresh_folder("saved_encoding") / "dataset.json";
  std::ofstream(path) << fitted;
  const auto test = table_of("a,y\n5,v\n");
  const auto splits = splits_of_tables({.encoding = path.string()}, train, nullptr, test);
  EXPECT_THAT(inputs_of(*splits.test), ElementsAre(3));
  EXPECT_EQ(splits.fitted, fitted);
  EXPECT_EQ(splits.test->label(0), 1);
  EXPECT_THAT([&] { splits_of_tables({.encoding = path.string()}, other, nullptr, test); },
              ThrowsMessage<DataError>(HasSubstr("\"w\" is a category that no training row has")));
}

}  // namespace
}  // namespace phalanx
