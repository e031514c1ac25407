// SPDX-License-Identifier: Apache-2.0
// Writes tables for plugin_test.py: write_tables FOLDER.
//
//   train-0.parquet, train-1.parquet   x, y [float, double], label (int32) = x > y, list (4 floats), text, sum = x + y;
//                                      60 rows each in groups of 25
//   test-0.arrow, test.stream          the same of 40 rows, as Arrow's file and stream, in batches of 16
//   images-0.parquet                   image {bytes, path}, label: 24 PNG of 8 x 8, black or white by the class
//   nulls.parquet, uneven.parquet      x with a null in row 3; list with lists of different lengths
#include <ATen/ops/full.h>
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/table.h>
#include <parquet/arrow/writer.h>

#include <cstdio>
#include <string>

#include "datasets/images/encode.h"

namespace {

using arrow::Status;

// Returns a number from 0 to 1 for row i. The sequence is not sorted.
float number(int row, int of) { return static_cast<float>((row * 37 + of * 53) % 101) / 101; }

arrow::Result<std::shared_ptr<arrow::Table>> numbers(int first, int rows, int null_row = -1, bool uneven = false) {
  arrow::FloatBuilder x;
  arrow::DoubleBuilder y;
  arrow::FloatBuilder sum;
  arrow::Int32Builder label;
  arrow::StringBuilder words;
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::ListBuilder list(arrow::default_memory_pool(), values);
  for (int row = first; row < first + rows; ++row) {
    const float a = number(row, 0), b = number(row, 1);
    ARROW_RETURN_NOT_OK(row == null_row ? x.AppendNull() : x.Append(a));
    ARROW_RETURN_NOT_OK(y.Append(b));
    ARROW_RETURN_NOT_OK(sum.Append(a + b));
    ARROW_RETURN_NOT_OK(label.Append(a > b ? 1 : 0));
    ARROW_RETURN_NOT_OK(words.Append("row " + std::to_string(row)));
    ARROW_RETURN_NOT_OK(list.Append());
    for (int i = 0; i < (uneven ? 1 + row % 2 : 4); ++i) ARROW_RETURN_NOT_OK(values->Append(i < 2 ? a : b));
  }
  arrow::ArrayVector columns;
  for (arrow::ArrayBuilder* builder :
       std::initializer_list<arrow::ArrayBuilder*>{&x, &y, &sum, &label, &list, &words}) {
    ARROW_ASSIGN_OR_RAISE(auto column, builder->Finish());
    columns.push_back(column);
  }
  const auto schema = arrow::schema({arrow::field("x", arrow::float32()), arrow::field("y", arrow::float64()),
                                     arrow::field("sum", arrow::float32()), arrow::field("label", arrow::int32()),
                                     arrow::field("list", columns[4]->type()), arrow::field("text", arrow::utf8())});
  return arrow::Table::Make(schema, columns);
}

arrow::Result<std::shared_ptr<arrow::Table>> images() {
  auto bytes = std::make_shared<arrow::BinaryBuilder>();
  auto path = std::make_shared<arrow::StringBuilder>();
  const auto type = arrow::struct_({arrow::field("bytes", arrow::binary()), arrow::field("path", arrow::utf8())});
  arrow::StructBuilder image(type, arrow::default_memory_pool(), {bytes, path});
  arrow::Int64Builder label;
  for (int row = 0; row < 24; ++row) {
    ARROW_RETURN_NOT_OK(image.Append());
    const auto shade = row % 2 == 0 ? 10 + row : 240 - row;
    ARROW_RETURN_NOT_OK(bytes->Append(phalanx::encode_png(at::full({1, 8, 8}, shade, at::kByte))));
    ARROW_RETURN_NOT_OK(path->Append(std::to_string(row) + ".png"));
    ARROW_RETURN_NOT_OK(label.Append(row % 2));
  }
  ARROW_ASSIGN_OR_RAISE(auto image_column, image.Finish());
  ARROW_ASSIGN_OR_RAISE(auto label_column, label.Finish());
  return arrow::Table::Make(arrow::schema({arrow::field("image", type), arrow::field("label", arrow::int64())}),
                            {image_column, label_column});
}

Status write_parquet(const arrow::Table& table, const std::string& path, int group) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::FileOutputStream::Open(path));
  ARROW_RETURN_NOT_OK(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), file, group));
  return file->Close();
}

Status write_arrow(const arrow::Table& table, const std::string& path, bool stream) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::FileOutputStream::Open(path));
  auto made =
      stream ? arrow::ipc::MakeStreamWriter(file, table.schema()) : arrow::ipc::MakeFileWriter(file, table.schema());
  ARROW_ASSIGN_OR_RAISE(auto writer, made);
  ARROW_RETURN_NOT_OK(writer->WriteTable(table, /*max_chunksize=*/16));
  ARROW_RETURN_NOT_OK(writer->Close());
  return file->Close();
}

Status write_all(const std::string& folder) {
  ARROW_ASSIGN_OR_RAISE(auto first, numbers(0, 60));
  ARROW_ASSIGN_OR_RAISE(auto second, numbers(60, 60));
  ARROW_ASSIGN_OR_RAISE(auto test, numbers(200, 40));
  ARROW_ASSIGN_OR_RAISE(auto nulls, numbers(0, 10, /*null_row=*/3));
  ARROW_ASSIGN_OR_RAISE(auto uneven, numbers(0, 10, -1, /*uneven=*/true));
  ARROW_ASSIGN_OR_RAISE(auto pictures, images());
  ARROW_RETURN_NOT_OK(write_parquet(*first, folder + "/train-0.parquet", 25));
  ARROW_RETURN_NOT_OK(write_parquet(*second, folder + "/train-1.parquet", 25));
  ARROW_RETURN_NOT_OK(write_parquet(*nulls, folder + "/nulls.parquet", 25));
  ARROW_RETURN_NOT_OK(write_parquet(*uneven, folder + "/uneven.parquet", 25));
  ARROW_RETURN_NOT_OK(write_parquet(*pictures, folder + "/images-0.parquet", 10));
  ARROW_RETURN_NOT_OK(write_arrow(*test, folder + "/test-0.arrow", /*stream=*/false));
  return write_arrow(*test, folder + "/test.stream", /*stream=*/true);
}

}  // namespace

int main(int argc, char** argv) {
  const auto status = argc == 2 ? write_all(argv[1]) : Status::Invalid("usage: write_tables FOLDER");
  if (!status.ok()) std::fprintf(stderr, "write_tables: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
