// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/sparse_batch.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "framework/ps/sparse/sparse_index.h"

namespace phalanx::ps {
namespace {

constexpr std::int64_t kAhead = 8;  // distance, in keys and rows, at which memory is prefetched

}  // namespace

SparseBatch::SparseBatch(const SparseKeys& layout, std::int64_t dim, const at::Tensor& keys)
    : dim_(dim), unique_(static_cast<std::size_t>(keys.numel())), blocks_(static_cast<std::size_t>(layout.servers())) {
  const std::int64_t count = keys.numel();
  sparse_transfer(Verb::kPush, static_cast<std::uint64_t>(count), dim);  // throws if there are too many keys
  const auto* const data = keys.const_data_ptr<std::int64_t>();
  SparseIndex index(count);
  std::vector<std::int64_t> unique;
  unique.reserve(unique_.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) index.prefetch(data[i + kAhead]);
    SparseIndex::Slot slot = index.find(data[i]);
    if (slot == SparseIndex::kNone) {
      if (!layout.has(data[i])) throw std::invalid_argument("a sparse table has no key " + std::to_string(data[i]));
      slot = static_cast<SparseIndex::Slot>(unique.size());
      index.insert(data[i], slot);
      unique.push_back(data[i]);
    }
    unique_[i] = slot;
  }
  std::vector<int> servers(unique.size());
  for (std::size_t i = 0; i < unique.size(); ++i) {
    servers[i] = layout.server_of(unique[i]);
    ++blocks_[servers[i]].rows;
  }
  std::vector<std::int64_t*> next_key(blocks_.size());
  std::vector<float*> next_row(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    auto& block = blocks_[i];
    if (block.rows == 0) continue;
    const auto bytes = static_cast<std::int64_t>(sparse_transfer(Verb::kPush, block.rows, dim).sent);
    block.bytes = at::empty({bytes}, at::kByte);
    next_key[i] = static_cast<std::int64_t*>(block.bytes.mutable_data_ptr());
    next_row[i] = reinterpret_cast<float*>(next_key[i] + block.rows);
  }
  rows_.resize(unique.size());
  for (std::size_t i = 0; i < unique.size(); ++i) {
    *next_key[servers[i]]++ = unique[i];
    rows_[i] = next_row[servers[i]];
    next_row[servers[i]] += dim;
  }
}

void SparseBatch::put(const float* rows) {
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < unique_.size(); ++i, rows += dim_) {
    float* const to = rows_[unique_[i]];
    if (unique_[i] == next) {
      std::copy_n(rows, dim_, to);
      ++next;
    } else {
      for (std::int64_t column = 0; column < dim_; ++column) to[column] += rows[column];
    }
  }
}

void SparseBatch::get(float* rows) const {
  for (std::size_t i = 0; i < unique_.size(); ++i, rows += dim_) {
    if (i + kAhead < unique_.size()) __builtin_prefetch(rows_[unique_[i + kAhead]]);
    std::copy_n(rows_[unique_[i]], dim_, rows);
  }
}

}  // namespace phalanx::ps
