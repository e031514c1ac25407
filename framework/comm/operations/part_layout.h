// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

namespace phalanx {

/// The number of elements that go to or come from each rank, in rank order. Empty: the same number for all ranks.
using Counts = at::IntArrayRef;

/// The offset and length, in elements, of each rank's part of a tensor. Made from `counts`, or, if that is empty, of P
/// equal parts of `total`.
class PartLayout {
 public:
  PartLayout(Counts counts, int ranks, std::int64_t total);

  std::int64_t count(int rank) const { return begins_[rank + 1] - begins_[rank]; }
  std::int64_t begin(int rank) const { return begins_[rank]; }
  std::int64_t total() const { return begins_.back(); }
  int ranks() const { return static_cast<int>(begins_.size()) - 1; }

  /// Returns a rank's part of a contiguous tensor of total() elements, as a one-dimensional view.
  at::Tensor of(const at::Tensor& tensor, int rank) const;

 private:
  c10::SmallVector<std::int64_t, 17> begins_;
};

/// Returns elements [begin, begin + count) of a contiguous tensor as a one-dimensional view, without autograd.
at::Tensor elements_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count);

}  // namespace phalanx
