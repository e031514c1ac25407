// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/ps/sparse/sparse_index.h"

namespace phalanx::ps {

/// Stores rows of numbers in slots, in slabs of about 1 MB that never move. Slots are allocated in order and never
/// freed; the owner of a slot may reuse it for another row.
class SparseRows {
 public:
  explicit SparseRows(std::int64_t numbers) : stride_(stride_of(numbers)) {
    while ((2 * stride_ * sizeof(float)) << shift_ <= kSlabBytes) ++shift_;
  }

  SparseIndex::Slot add() {
    if (size_ >> shift_ == slabs_.size()) slabs_.push_back(std::make_unique_for_overwrite<float[]>(stride_ << shift_));
    return size_++;
  }

  float* operator[](SparseIndex::Slot slot) {
    return slabs_[slot >> shift_].get() + (slot & ((std::size_t{1} << shift_) - 1)) * stride_;
  }

  void prefetch(SparseIndex::Slot slot) {
    const float* const row = (*this)[slot];
    for (std::size_t i = 0; i < std::min<std::size_t>(stride_, 8 * kLine); i += kLine) __builtin_prefetch(row + i, 1);
  }

  static std::int64_t row_bytes(std::int64_t numbers) {
    return static_cast<std::int64_t>(stride_of(numbers) * sizeof(float));
  }
  static constexpr std::size_t kSlabBytes = 1 << 20;

 private:
  static constexpr std::size_t kLine = 16;  // numbers per cache line

  static std::size_t stride_of(std::int64_t numbers) { return (static_cast<std::size_t>(numbers) + 3) / 4 * 4; }

  std::size_t stride_;
  int shift_ = 0;  // a slab has 2^shift_ rows
  SparseIndex::Slot size_ = 0;
  std::vector<std::unique_ptr<float[]>> slabs_;
};

}  // namespace phalanx::ps
