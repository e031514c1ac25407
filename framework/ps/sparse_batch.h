// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/ps/sparse_keys.h"

namespace phalanx::ps {

/// The keys of one request to a sparse table, each once and divided among the servers: a block of bytes for each server
/// as the wire has it, first its keys, in the order in which they first came, then their rows.
class SparseBatch {
 public:
  /// Throws std::invalid_argument for keys that the table does not have, and Error for too many of them.
  SparseBatch(const SparseKeys& layout, std::int64_t dim, const at::Tensor& keys);

  struct Block {
    at::Tensor bytes;  // undefined: no key is this server's
    std::uint32_t rows = 0;
  };
  const std::vector<Block>& blocks() const { return blocks_; }  // by server

  /// Fills the rows with those of a tensor [keys..., dim]; the rows of equal keys are summed, in their order.
  void put(const float* rows);

  /// Fills a tensor [keys..., dim] with the rows.
  void get(float* rows) const;

 private:
  std::int64_t dim_;
  std::vector<std::uint32_t> unique_;  // of each key: which of the unique ones it is
  std::vector<float*> rows_;           // of each unique key
  std::vector<Block> blocks_;
};

}  // namespace phalanx::ps
