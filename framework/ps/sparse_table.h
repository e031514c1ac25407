// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/ps/client.h"
#include "framework/ps/sparse_keys.h"

namespace phalanx::ps {

class SparseBatch;

/// A sparse table as one client uses it: rows of TableSpec::dim float32 by their keys. Not thread-safe.
///
/// A request goes to those servers only that have one of its keys, at most one message to each; keys that repeat travel
/// once. Requests are asynchronous as those of Client, which must outlive the table.
class SparseTable {
 public:
  /// Creates the table, or takes the one of this name if it is the same. Blocks.
  SparseTable(Client& client, const TableSpec& spec);

  const TableSpec& spec() const { return table_.spec(); }
  std::int64_t clock() const { return table_.clock(); }
  const std::vector<std::int64_t>& staleness_seen() const { return table_.staleness_seen(); }

  struct PullOptions {
    bool read_only = false;  // rows that do not exist are read as they would begin, and not created
  };

  /// `keys`: int64 of any shape; `rows`: float32 [keys..., dim], filled when the Work is complete. The table's contract
  /// lets it read as of dense tables (TableSpec::staleness).
  Work pull(const at::Tensor& keys, at::Tensor rows, const PullOptions& options);
  Work pull(const at::Tensor& keys, at::Tensor rows) { return pull(keys, std::move(rows), {}); }

  /// The same, into a new tensor. Blocks.
  at::Tensor pull(const at::Tensor& keys);

  /// Updates rows by rule `options.rule`; those of equal keys are summed before, in their order. With a tick, also
  /// servers that have none of the keys are told of it. `updates` may be changed as soon as this returns.
  Work push(const at::Tensor& keys, const at::Tensor& updates, const Client::PushOptions& options);

  /// Rows with all that rules remember of them.
  struct Rows {
    at::Tensor keys;     // [r] int64
    at::Tensor numbers;  // [r, numbers_of_row()] float32: the values, and what each rule remembers
  };
  std::int64_t numbers_of_row() const { return numbers_; }

  /// All that a server holds, in no particular order. Waits for no clock: nobody may pull or push meanwhile. Blocks.
  Rows read_rows(std::size_t server);

  /// The same by blocks of at most 32 MB, which belong to the table again when `visit` returns.
  void for_each_block(std::size_t server, const std::function<void(const Rows& block)>& visit);

  /// Rows on the servers that their keys belong to become these; is no update. Blocks. Throws std::invalid_argument for
  /// keys that the table does not have.
  void write_rows(const Rows& rows);

  /// How many rows each server holds now. Blocks.
  std::vector<std::int64_t> rows_of_servers();

  /// Bytes of keys and rows that have travelled from servers and to them, with their keys.
  struct Bytes {
    std::int64_t pulled = 0, pushed = 0;
  };
  const Bytes& bytes() const { return bytes_; }

 private:
  friend class CachedSparseTable;

  void check_keys(const at::Tensor& keys) const;
  std::int64_t most_records() const;  // of a request
  void check(const at::Tensor& keys, const at::Tensor& rows) const;
  std::vector<std::int64_t> row_sizes(const at::Tensor& keys) const;  // [keys..., dim]
  Work launch(const SparseBatch& batch, const Header& request);
  [[noreturn]] void refuse(const std::string& why) const;

  Client& client_;
  Table table_;
  SparseKeys layout_;
  std::int64_t numbers_;
  Bytes bytes_;
};

}  // namespace phalanx::ps
