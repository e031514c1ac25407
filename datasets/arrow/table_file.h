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

/// A table in one file, in row groups that can be read one by one. The first bytes determine the format: Parquet,
/// Arrow IPC (Feather), or an Arrow IPC stream, as Hugging Face datasets use. Arrow files are mapped into memory.
/// Thread-safe.
class TableFile {
 public:
  /// Throws DataError, which names the file, for other formats and for damaged files.
  static std::shared_ptr<const TableFile> open(const std::filesystem::path& path);

  virtual ~TableFile() = default;

  const std::string& path() const { return path_; }
  const arrow::Schema& schema() const { return *schema_; }
  const std::vector<std::int64_t>& rows_of_groups() const { return rows_; }

  /// Returns the position of a column. Throws DataError, which lists the existing names.
  int column(const std::string& name) const;

  /// Returns some columns of a group, in the order of `columns`, one array each, with rows_of_groups()[group] rows. All
  /// their offsets, sizes and text are validated. Throws DataError if the file is damaged.
  virtual arrow::ArrayVector read(int group, const std::vector<int>& columns) const = 0;

 protected:
  std::string path_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::int64_t> rows_;
};

}  // namespace phalanx
