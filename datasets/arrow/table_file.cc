// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrow/table_file.h"

#include <arrow/array/array_base.h>
#include <arrow/array/concatenate.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <exception>
#include <fstream>
#include <mutex>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/reason.h"

namespace phalanx {
namespace {

[[noreturn]] void refuse(const std::string& path, const arrow::Status& status) {
  throw DataError(path + ": " + status.ToString());
}

void check(const arrow::Status& status, const std::string& path) {
  if (!status.ok()) refuse(path, status);
}

template <class T>
T value_of(arrow::Result<T> result, const std::string& path) {
  check(result.status(), path);
  return std::move(result).ValueUnsafe();
}

// The other files of this plug-in trust the offsets, sizes and text of a column, so they are validated here.
void validate(const arrow::Array& column, std::int64_t rows, const std::string& name, const std::string& path) {
  const auto status = column.ValidateFull();
  if (!status.ok()) throw DataError(path + ": column " + name + ": " + status.ToString());
  if (column.length() == rows) return;
  throw DataError(path + ": column " + name + ": has " + std::to_string(column.length()) + " rows in a group of " +
                  std::to_string(rows));
}

// Calls `body`. Turns exceptions of libraries, such as Parquet's, into DataErrors that begin with `path`.
template <class Body>
auto reading(const std::string& path, const Body& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DataError(path + ": " + reason(error));
  }
}

std::shared_ptr<arrow::Array> joined(const arrow::ChunkedArray& column, const std::string& path) {
  if (column.num_chunks() == 1) return column.chunk(0);
  return value_of(arrow::Concatenate(column.chunks()), path);
}

class ParquetFile final : public TableFile {
 public:
  explicit ParquetFile(std::string path) {
    path_ = std::move(path);
    reading(path_, [&] { open(); });
  }

  arrow::ArrayVector read(int group, const std::vector<int>& columns) const override {
    std::vector<int> leaves;
    for (const auto column : columns)
      add_leaves(reader_->manifest().schema_fields.at(static_cast<std::size_t>(column)), leaves);
    const std::lock_guard lock(mutex_);
    return reading(path_, [&] {
      const auto table = value_of(reader_->ReadRowGroup(group, leaves), path_);
      arrow::ArrayVector arrays;
      for (const auto column : columns) {
        const auto name = schema_->field(column)->name();
        const auto chunks = table->GetColumnByName(name);
        if (!chunks) throw DataError(path_ + ": column " + name + ": has no data in group " + std::to_string(group));
        arrays.push_back(joined(*chunks, path_));
        validate(*arrays.back(), rows_.at(static_cast<std::size_t>(group)), name, path_);
      }
      return arrays;
    });
  }

 private:
  void open() {
    auto file = value_of(arrow::io::ReadableFile::Open(path_), path_);
    auto properties = parquet::default_reader_properties();
    properties.set_page_checksum_verification(true);
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(std::move(file), properties), path_);
    reader_ = value_of(builder.Build(), path_);
    check(reader_->GetSchema(&schema_), path_);
    const auto metadata = reader_->parquet_reader()->metadata();
    auto left = metadata->num_rows();
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      rows_.push_back(metadata->RowGroup(group)->num_rows());
      if (rows_.back() < 0 || rows_.back() > left) break;
      left -= rows_.back();
    }
    if (left == 0 && std::ssize(rows_) == metadata->num_row_groups()) return;
    throw DataError(path_ + ": declares " + std::to_string(metadata->num_rows()) +
                    " rows, but its groups have another number of rows");
  }

  // A leaf column of Parquet is a column of numbers or strings; lists and structures consist of several of them.
  static void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
    if (field.children.empty()) leaves.push_back(field.column_index);
    for (const auto& child : field.children) add_leaves(child, leaves);
  }

  mutable std::mutex mutex_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
};

class ArrowFile final : public TableFile {
 public:
  ArrowFile(std::string path, bool stream) {
    path_ = std::move(path);
    reading(path_, [&] {
      auto file = value_of(arrow::io::MemoryMappedFile::Open(path_, arrow::io::FileMode::READ), path_);
      if (stream) {
        read_stream(std::move(file));
      } else {
        read_file(std::move(file));
      }
    });
    for (const auto& batch : batches_) rows_.push_back(batch->num_rows());
  }

  arrow::ArrayVector read(int group, const std::vector<int>& columns) const override {
    const auto& batch = *batches_.at(static_cast<std::size_t>(group));
    return reading(path_, [&] {
      arrow::ArrayVector arrays;
      for (const auto column : columns) {
        arrays.push_back(batch.column(column));
        validate(*arrays.back(), batch.num_rows(), schema_->field(column)->name(), path_);
      }
      return arrays;
    });
  }

 private:
  void read_stream(std::shared_ptr<arrow::io::InputStream> file) {
    const auto reader = value_of(arrow::ipc::RecordBatchStreamReader::Open(std::move(file)), path_);
    schema_ = reader->schema();
    while (auto batch = value_of(reader->Next(), path_)) batches_.push_back(std::move(batch));
  }

  void read_file(std::shared_ptr<arrow::io::RandomAccessFile> file) {
    const auto reader = value_of(arrow::ipc::RecordBatchFileReader::Open(std::move(file)), path_);
    schema_ = reader->schema();
    for (int i = 0; i < reader->num_record_batches(); ++i) {
      batches_.push_back(value_of(reader->ReadRecordBatch(i), path_));
    }
  }

  std::vector<std::shared_ptr<arrow::RecordBatch>> batches_;  // views of the mapped file, unless the file is compressed
};

}  // namespace

std::shared_ptr<const TableFile> TableFile::open(const std::filesystem::path& path) {
  std::string begin(6, '\0');
  std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  const std::string_view bytes = begin;
  std::shared_ptr<TableFile> file;
  if (bytes.starts_with("PAR1")) {
    file = std::make_shared<ParquetFile>(path.string());
  } else if (bytes == "ARROW1") {
    file = std::make_shared<ArrowFile>(path.string(), /*stream=*/false);
  } else if (bytes.starts_with("\xFF\xFF\xFF\xFF")) {
    file = std::make_shared<ArrowFile>(path.string(), /*stream=*/true);
  } else {
    throw DataError(path.string() + ": is neither a Parquet file nor an Arrow file");
  }
  return file;
}

int TableFile::column(const std::string& name) const {
  const auto place = schema_->GetFieldIndex(name);
  if (place >= 0) return place;
  std::string names;
  for (const auto& field : schema_->fields()) names += (names.empty() ? "" : ", ") + field->name();
  throw DataError(path_ + ": has no column \"" + name + "\"; its columns are " + names);
}

}  // namespace phalanx
