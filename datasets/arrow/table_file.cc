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

#include <fstream>
#include <mutex>
#include <string_view>
#include <utility>

#include "framework/base/error.h"

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

std::shared_ptr<arrow::Array> joined(const arrow::ChunkedArray& column, const std::string& path) {
  if (column.num_chunks() == 1) return column.chunk(0);
  return value_of(arrow::Concatenate(column.chunks()), path);
}

// Arrow takes the offsets, indices and lengths in a file as they are, until it is asked to check them.
std::shared_ptr<arrow::Array> checked(std::shared_ptr<arrow::Array> array, std::int64_t rows, const std::string& path) {
  check(array->ValidateFull(), path);
  if (array->length() == rows) return array;
  throw DataError(path + ": a column has " + std::to_string(array->length()) + " of " + std::to_string(rows) + " rows");
}

class ParquetFile final : public TableFile {
 public:
  explicit ParquetFile(std::string path) {
    path_ = std::move(path);
    auto file = value_of(arrow::io::ReadableFile::Open(path_), path_);
    reader_ = value_of(parquet::arrow::OpenFile(std::move(file), arrow::default_memory_pool()), path_);
    check(reader_->GetSchema(&schema_), path_);
    const auto metadata = reader_->parquet_reader()->metadata();
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      rows_.push_back(metadata->RowGroup(group)->num_rows());
      if (rows_.back() < 0) throw DataError(path_ + ": a row group has " + std::to_string(rows_.back()) + " rows");
    }
  }

  arrow::ArrayVector read(int group, const std::vector<int>& columns) const override {
    std::vector<int> leaves;
    for (const auto column : columns)
      add_leaves(reader_->manifest().schema_fields.at(static_cast<std::size_t>(column)), leaves);
    const std::lock_guard lock(mutex_);
    const auto table = value_of(reader_->ReadRowGroup(group, leaves), path_);
    arrow::ArrayVector arrays;
    for (const auto column : columns) {
      const auto& chunks = *table->GetColumnByName(schema_->field(column)->name());
      check(chunks.ValidateFull(), path_);
      arrays.push_back(checked(joined(chunks, path_), rows_[static_cast<std::size_t>(group)], path_));
    }
    return arrays;
  }

 private:
  // Parquet counts the columns of numbers and strings that lists and structures are made of.
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
    auto file = value_of(arrow::io::MemoryMappedFile::Open(path_, arrow::io::FileMode::READ), path_);
    if (stream) {
      read_stream(std::move(file));
    } else {
      read_file(std::move(file));
    }
    for (const auto& batch : batches_) {
      check(batch->Validate(), path_);
      rows_.push_back(batch->num_rows());
    }
  }

  arrow::ArrayVector read(int group, const std::vector<int>& columns) const override {
    arrow::ArrayVector arrays;
    const auto& batch = *batches_.at(static_cast<std::size_t>(group));
    for (const auto column : columns) arrays.push_back(checked(batch.column(column), batch.num_rows(), path_));
    return arrays;
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

  std::vector<std::shared_ptr<arrow::RecordBatch>> batches_;  // views of the mapped file, unless it is compressed
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
    throw DataError(path.string() + ": neither a Parquet file nor one of Arrow");
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
