// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/ps/sparse/sparse_keys.h"

namespace phalanx::ps {

/// The keys of one request to a sparse table, without repetitions and divided among the servers. There is a block of
/// bytes for each server in the format of the wire: first its keys, in the order of their first occurrence, then their
/// rows.
class SparseBatch {
 public:
  /// Throws std::invalid_argument if the table cannot have one of the keys, and Error if there are too many keys.
  SparseBatch(const SparseKeys& layout, std::int64_t dim, const at::Tensor& keys);

  struct Block {
    at::Tensor bytes;  // undefined if the server has none of the keys
    std::uint32_t rows = 0;
  };
  const std::vector<Block>& blocks() const { return blocks_; }  // indexed by server

  /// Fills the blocks with the rows of a tensor [keys..., dim]. Rows of equal keys are summed in order.
  void put(const float* rows);

  /// Fills a tensor [keys..., dim] with the rows in the blocks.
  void get(float* rows) const;

 private:
  std::int64_t dim_;
  std::vector<std::uint32_t> unique_;  // index of the unique key, for each key
  std::vector<float*> rows_;           // for each unique key
  std::vector<Block> blocks_;
};

}  // namespace phalanx::ps
