// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/table.h>
#include <arrow/type.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace phalanx {

/// A file of a table, in groups of rows that can be read one by one: Parquet, Arrow IPC (Feather), or an Arrow IPC
/// stream, as Hugging Face's datasets keep; which of them is told by its first bytes. Arrow's files are mapped into
/// memory. Thread-safe.
class TableFile {
 public:
  /// Throws DataError, which names the file, for one that is none of these or is damaged.
  static std::shared_ptr<const TableFile> open(const std::filesystem::path& path);

  virtual ~TableFile() = default;

  const std::string& path() const { return path_; }
  const arrow::Schema& schema() const { return *schema_; }
  const std::vector<std::int64_t>& rows_of_groups() const { return rows_; }

  /// The place of a column. Throws DataError, with the names of those that there are.
  int column(const std::string& name) const;

  /// Some columns of a group, in the order of `columns`, one array each. They are valid in all of their offsets, sizes
  /// and text, and have rows_of_groups() rows. Throws DataError where the file is damaged.
  virtual arrow::ArrayVector read(int group, const std::vector<int>& columns) const = 0;

 protected:
  std::string path_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::int64_t> rows_;
};

}  // namespace phalanx
