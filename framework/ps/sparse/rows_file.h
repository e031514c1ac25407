// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "framework/base/descriptor.h"
#include "framework/ps/protocol/table_spec.h"
#include "framework/ps/sparse/sparse_initial.h"
#include "framework/ps/sparse/sparse_table.h"

namespace phalanx::ps {

/// Writes the rows of a table, without the state of its rules, as tensors `keys` [r] int64 and `rows` [r, dim] float32
/// of a safetensors file, in no particular order. Needs memory for one block of rows. No client may pull or push during
/// the call. Blocks. Throws DataError if the file cannot be written.
void write_rows_file(const std::string& path, SparseTable& table);

/// Reads rows from such a file without a server. Rows that are not in the file are read as their initial values. All
/// keys are kept in memory, but none of the rows. Not thread-safe.
class RowsFile {
 public:
  /// Opens the file of a table with this spec. Throws DataError if it is missing, damaged, or of another table.
  RowsFile(const std::string& path, const TableSpec& spec);

  std::int64_t rows() const { return keys_.numel(); }

  /// Reads rows. `keys` is [n] int64, and `rows` [n, dim] float32 is filled. Throws DataError if the file cannot be
  /// read any more.
  void read(const at::Tensor& keys, const at::Tensor& rows) const;

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void check_keys(const TableSpec& spec) const;
  void read_row(std::int64_t place, float* row) const;

  std::string path_;
  std::int64_t dim_;
  SparseInitial initial_;
  at::Tensor keys_;    // [r] ascending
  at::Tensor places_;  // [r], positions of their rows
  std::uint64_t rows_begin_ = 0;
  Descriptor file_;
};

}  // namespace phalanx::ps
