// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/ps/client/client.h"
#include "framework/ps/sparse/sparse_keys.h"

namespace phalanx::ps {

class SparseBatch;

/// A sparse table from the point of view of one client: rows of TableSpec::dim float32, identified by keys. Not
/// thread-safe.
///
/// A request sends at most one message to each server, and only to servers that have one of its keys. Repeated keys are
/// sent once. Requests are asynchronous, as in Client. The client must outlive the table.
class SparseTable {
 public:
  /// Creates the table, or opens the existing one of this name if its spec is the same. Blocks.
  SparseTable(Client& client, const TableSpec& spec);

  const TableSpec& spec() const { return table_.spec(); }
  std::int64_t clock() const { return table_.clock(); }
  const std::vector<std::int64_t>& staleness_seen() const { return table_.staleness_seen(); }

  struct PullOptions {
    bool read_only = false;  // rows that do not exist are read as their initial values and not created
  };

  /// Reads rows. `keys` is int64 of any shape; `rows` is float32 [keys..., dim] and is filled when the Work is
  /// complete. The contract of TableSpec::staleness applies as for dense tables.
  Work pull(const at::Tensor& keys, at::Tensor rows, const PullOptions& options);
  Work pull(const at::Tensor& keys, at::Tensor rows) { return pull(keys, std::move(rows), {}); }

  /// Does the same and returns a new tensor. Blocks.
  at::Tensor pull(const at::Tensor& keys);

  /// Updates rows by rule `options.rule`. Updates of equal keys are summed in order before they are sent. With a tick,
  /// servers that have none of the keys are informed as well. `updates` may be changed as soon as this function
  /// returns.
  Work push(const at::Tensor& keys, const at::Tensor& updates, const Client::PushOptions& options);

  /// Rows together with the state of the rules.
  struct Rows {
    at::Tensor keys;     // [r] int64
    at::Tensor numbers;  // [r, numbers_of_row()] float32: the values, then the state of each rule
  };
  std::int64_t numbers_of_row() const { return numbers_; }

  /// Returns all rows of a server, in no particular order. Does not wait for any clock. No client may pull or push
  /// during the call. Blocks.
  Rows read_rows(std::size_t server);

  /// Does the same in blocks of at most 32 MB. A block is valid only during the call of `visit`.
  void for_each_block(std::size_t server, const std::function<void(const Rows& block)>& visit);

  /// Sets rows on the servers to which their keys belong. Does not count as an update. Blocks. Throws
  /// std::invalid_argument if the table cannot have one of the keys.
  void write_rows(const Rows& rows);

  /// Returns the current number of rows on each server. Blocks.
  std::vector<std::int64_t> rows_of_servers();

  /// Bytes of keys and rows received from servers and sent to them.
  struct Bytes {
    std::int64_t pulled = 0, pushed = 0;
  };
  const Bytes& bytes() const { return bytes_; }

 private:
  friend class CachedSparseTable;

  void check_keys(const at::Tensor& keys) const;
  std::int64_t max_records() const;  // per request
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
