// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/ps/message.h"
#include "framework/ps/table.h"

namespace phalanx::ps {

inline constexpr std::int64_t kMostDim = 1 << 16;
inline constexpr std::uint64_t kMostBlockBytes = 1 << 30;  // of one request: memory that a client makes a server take

/// Which keys a sparse table has, and which server holds which.
class SparseKeys {
 public:
  /// Throws ConfigError for a spec that makes no sense, or not for this number of servers.
  SparseKeys(const TableSpec& spec, int servers);

  bool has(std::int64_t key) const { return key >= 0 && key < keys_; }
  int server_of(std::int64_t key) const;

  /// Rows that this server holds at most.
  std::int64_t capacity_of(int server) const;

  int servers() const { return servers_; }

 private:
  std::int64_t keys_;
  std::int64_t capacity_;
  int servers_;
  bool by_range_;
};

/// Of the tensor of a request about `rows` keys: bytes, first the keys (int64), then the rows of `dim` float32.
Transfer sparse_transfer(Verb verb, std::uint64_t rows, std::int64_t dim);

/// Of one of kReadRows or kWriteRows: bytes, first the keys (int64), then as many rows of `numbers` float32: the values
/// and what rules remember, in their order.
Transfer record_transfer(Verb verb, std::uint64_t rows, std::int64_t numbers);

}  // namespace phalanx::ps
