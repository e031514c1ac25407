// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/ps/protocol/message.h"
#include "framework/ps/protocol/table_spec.h"

namespace phalanx::ps {

inline constexpr std::int64_t kMaxDim = 1 << 16;
/// The limit for one request: it bounds the memory that a client makes a server allocate.
inline constexpr std::uint64_t kMaxBlockBytes = 1 << 30;

/// Defines which keys a sparse table can have, and which server holds each of them.
class SparseKeys {
 public:
  /// Throws ConfigError if the spec is invalid, or not possible with this number of servers.
  SparseKeys(const TableSpec& spec, int servers);

  bool has(std::int64_t key) const { return key >= 0 && key < keys_; }
  int server_of(std::int64_t key) const;

  /// Returns the maximum number of rows on a server.
  std::int64_t capacity_of(int server) const;

  int servers() const { return servers_; }

 private:
  std::int64_t keys_;
  std::int64_t capacity_;
  int servers_;
  bool by_range_;
};

/// Returns the transfer of a request with `rows` keys. Its tensor has bytes: first the keys (int64), then the rows of
/// `dim` float32.
Transfer sparse_transfer(Verb verb, std::uint64_t rows, std::int64_t dim);

/// Returns the transfer of a kReadRows or kWriteRows request. Its tensor has bytes: first the keys (int64), then the
/// same number of rows of `numbers` float32: the values, followed by the state of each rule.
Transfer record_transfer(Verb verb, std::uint64_t rows, std::int64_t numbers);

}  // namespace phalanx::ps
