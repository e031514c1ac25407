// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "framework/base/descriptor.h"
#include "framework/ps/sparse_initial.h"
#include "framework/ps/sparse_table.h"
#include "framework/ps/table.h"

namespace phalanx::ps {

/// Writes the rows of a table, without what its rules remember of them, as tensors `keys` [r] int64 and `rows` [r, dim]
/// float32 of a safetensors file, in no particular order. Needs memory for a block of rows at a time. Nobody may pull
/// or push meanwhile. Blocks. Throws DataError where the file cannot be written.
void write_rows_file(const std::string& path, SparseTable& table);

/// Such a file, of which rows are read without a server; those that are not in it as they would begin. Of the rows none
/// is in memory, of the keys all are. Not thread-safe.
class RowsFile {
 public:
  /// Opens it as one of such a table. Throws DataError where it is missing, damaged, or of another table.
  RowsFile(const std::string& path, const TableSpec& spec);

  std::int64_t rows() const { return keys_.numel(); }

  /// `keys` [n] int64; `rows` [n, dim] float32, filled. Throws DataError where the file cannot be read any more.
  void read(const at::Tensor& keys, const at::Tensor& rows) const;

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void check_keys(const TableSpec& spec) const;
  void read_row(std::int64_t place, float* row) const;

  std::string path_;
  std::int64_t dim_;
  SparseInitial initial_;
  at::Tensor keys_;    // [r] ascending
  at::Tensor places_;  // [r], of their rows
  std::uint64_t rows_begin_ = 0;
  Descriptor file_;
};

}  // namespace phalanx::ps
