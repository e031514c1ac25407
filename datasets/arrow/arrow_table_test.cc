// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrow/arrow_table.h"

#include <ATen/core/Tensor.h>
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_decimal.h>
#include <arrow/array/builder_dict.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/tables/encoding_config.h"
#include "datasets/tables/table_splits.h"
#include "datasets/testing/idx_files.h"
#include "datasets/testing/table.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using testing::fresh_folder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Column {
  std::string name;
  std::shared_ptr<arrow::Array> values;
};

// Returns a column; nullopt becomes a null.
template <class Builder, class Value>
Column column(const std::string& name, std::initializer_list<std::optional<Value>> values, Builder&& builder) {
  for (const auto& value : values) {
    const auto status = value ? builder.Append(*value) : builder.AppendNull();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return {name, *builder.Finish()};
}

Column doubles(const std::string& name, std::initializer_list<std::optional<double>> values) {
  return column(name, values, arrow::DoubleBuilder());
}

Column integers(const std::string& name, std::initializer_list<std::optional<std::int64_t>> values) {
  return column(name, values, arrow::Int64Builder());
}

Column booleans(const std::string& name, std::initializer_list<std::optional<bool>> values) {
  return column(name, values, arrow::BooleanBuilder());
}

Column words(const std::string& name, std::initializer_list<std::optional<std::string>> values) {
  return column(name, values, arrow::StringBuilder());
}

Column categories(const std::string& name, std::initializer_list<std::optional<std::string>> values) {
  return column(name, values, arrow::StringDictionaryBuilder());
}

class ArrowTable : public ::testing::Test {
 protected:
  // Writes a file with two rows per group.
  std::filesystem::path write(const std::string& name, const std::vector<Column>& columns) {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const auto& [column, values] : columns) {
      fields.push_back(arrow::field(column, values->type()));
      arrays.push_back(values);
    }
    const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
    const auto path = folder_ / name;
    const auto file = *arrow::io::FileOutputStream::Open(path.string());
    const auto keep_types = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    const auto status = parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, 2,
                                                   parquet::default_writer_properties(), keep_types);
    EXPECT_TRUE(status.ok() && file->Close().ok()) << status.ToString();
    return path;
  }

  std::shared_ptr<const TableSource> table(const std::vector<Column>& columns) {
    return read_arrow_table({write("a.parquet", columns)});
  }

  const std::filesystem::path folder_ = fresh_folder("arrow_table");
};

TEST_F(ArrowTable, HasTheTypesOfItsColumns) {
  const auto read = table({doubles("a", {1.5, 2}),
                           integers("b", {1, 2}),
                           booleans("c", {true, false}),
                           words("d", {"x", "y"}),
                           words("e", {"2024-01-31", "2024-02-01"}),
                           categories("f", {"u", "u"}),
                           column("g", {std::optional(19000), std::optional(19001)}, arrow::Date32Builder()),
                           {"h", std::make_shared<arrow::NullArray>(2)}});
  EXPECT_THAT(read->names(), ElementsAre("a", "b", "c", "d", "e", "f", "g", "h"));
  std::vector<ValueType> types;
  for (std::int64_t i = 0; i < 8; ++i) types.push_back(read->type_of(i));
  EXPECT_THAT(types, ElementsAre(ValueType::kNumber, ValueType::kNumber, ValueType::kBoolean, ValueType::kText,
                                 ValueType::kDate, ValueType::kText, ValueType::kDate, ValueType::kNumber));
}

TEST_F(ArrowTable, ReadsNumbersOfAllGroups) {
  const arrow::Decimal128 price(1250);
  const auto read =
      table({doubles("a", {1.5, {}, -2, NAN, 3}), integers("b", {1, {}, 3, 4, 5}),
             booleans("c", {true, false, {}, true, true}),
             column("d", {std::optional(price), {}, {}, {}, {}}, arrow::Decimal128Builder(arrow::decimal128(8, 2)))});
  EXPECT_EQ(read->rows(), 5);
  const auto numbers = [&](std::int64_t i) { return read->numbers(i); };
  EXPECT_THAT(numbers(0), ElementsAre(1.5, ::testing::IsNan(), -2, ::testing::IsNan(), 3));
  EXPECT_THAT(numbers(1), ElementsAre(1, ::testing::IsNan(), 3, 4, 5));
  EXPECT_THAT(numbers(2), ElementsAre(1, 0, ::testing::IsNan(), 1, 1));
  EXPECT_EQ(numbers(3)[0], 12.5);
}

TEST_F(ArrowTable, ReadsTextsAndCategoriesOnce) {
  const auto read =
      table({words("a", {"x", {}, "y", "x"}), categories("b", {"u", "v", {}, "u"}), integers("c", {7, 8, 7, {}})});
  for (const std::int64_t column : {0, 1}) {
    const auto texts = read->texts(column);
    EXPECT_EQ(texts.values, column == 0 ? (std::vector<std::string>{"x", "y"}) : (std::vector<std::string>{"u", "v"}));
  }
  EXPECT_THAT(read->texts(0).codes, ElementsAre(0, -1, 1, 0));
  EXPECT_THAT(read->texts(1).codes, ElementsAre(0, 1, -1, 0));
  EXPECT_THAT(read->texts(2).values, ElementsAre("7", "8"));
}

TEST_F(ArrowTable, MatchesColumnsOfFilesByName) {
  const auto one = write("1.parquet", {integers("x", {1, 2, 3}), words("y", {"a", "b", "a"})});
  const auto two = write("2.parquet", {words("y", {"c"}), integers("x", {4})});
  const auto read = read_arrow_table({one, two});
  EXPECT_EQ(read->rows(), 4);
  EXPECT_THAT(read->numbers(0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(read->texts(1).values, ElementsAre("a", "b", "c"));
  EXPECT_THAT(read->name(), HasSubstr("1.parquet and 1 more"));
}

TEST_F(ArrowTable, RecognizesTheIndexThatPandasWrites) {
  EXPECT_EQ(table({integers("x", {1}), integers("__index_level_0__", {5})})->row_names(), 1);
  EXPECT_EQ(table({integers("x", {1})})->row_names(), -1);
}

TEST_F(ArrowTable, SaysWhatIsWrongWhere) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double number : {1e39, -kInfinity}) {
    EXPECT_THAT([&] { table({doubles("x", {1, 2, 3, number})})->numbers(0); },
                ThrowsMessage<DataError>(HasSubstr("a.parquet, group 1, column x, row 1 of the group: ")));
  }
  EXPECT_THAT([&] { table({column("x", {std::optional<std::string>("a")}, arrow::BinaryBuilder())})->type_of(0); },
              ThrowsMessage<DataError>(HasSubstr("column x: has the type binary, which is not supported; leave "
                                                 "the column out (dataset.drop)")));
  const auto numbers = write("1.parquet", {integers("x", {1})}), texts = write("2.parquet", {words("x", {"1"})});
  EXPECT_THAT(
      [&] { read_arrow_table({numbers, texts})->type_of(0); },
      ThrowsMessage<DataError>(HasSubstr("2.parquet, group 0, column x: has the type string, but the column has "
                                         "values of type number in ")));
  EXPECT_THAT([&] { read_arrow_table({numbers, write("3.parquet", {integers("y", {1})})})->numbers(0); },
              ThrowsMessage<DataError>(HasSubstr("3.parquet: has no column \"x\"; its columns are y")));
  EXPECT_THAT([&] { table({words("x", {"a"})})->numbers(0); },
              ThrowsMessage<DataError>(HasSubstr("column x: has the type string, expected numbers")));
}

TEST_F(ArrowTable, MakesTheSamplesOfTheSameTableInCsv) {
  const auto csv = testing::table_of(
      "age,sex,member,fare,class\n22,male,true,7.25,third\n,female,false,71.5,first\n26,female,true,8,third\n");
  const auto parquet = table({integers("age", {22, {}, 26}), categories("sex", {"male", "female", "female"}),
                              booleans("member", {true, false, true}), doubles("fare", {7.25, 71.5, 8}),
                              words("class", {"third", "first", "third"})});
  EncodingConfig config;
  config.missing = "mean";
  config.standardize = true;
  const auto batch_of = [&](const TablePtr& from) {
    const auto splits = splits_of_tables(config, from, nullptr, from);
    Batch batch;
    splits.train->gather(std::vector<std::int64_t>{0, 1, 2}, 0, batch);
    return batch;
  };
  const auto expected = batch_of(csv), actual = batch_of(parquet);
  EXPECT_TRUE(expected.inputs.at(0).equal(actual.inputs.at(0)));
  EXPECT_TRUE(expected.targets.at(0).equal(actual.targets.at(0)));
}

}  // namespace
}  // namespace phalanx
