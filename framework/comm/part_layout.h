// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

namespace phalanx {

/// Elements that go to or come from each rank, in rank order. Empty: the same for all.
using Counts = at::IntArrayRef;

/// Where each rank's part of a tensor begins and how long it is, in elements. Made of `counts`, or of P equal parts of
/// `total`.
class PartLayout {
 public:
  PartLayout(Counts counts, int ranks, std::int64_t total);

  std::int64_t count(int rank) const { return begins_[rank + 1] - begins_[rank]; }
  std::int64_t begin(int rank) const { return begins_[rank]; }
  std::int64_t total() const { return begins_.back(); }
  int ranks() const { return static_cast<int>(begins_.size()) - 1; }

  /// A rank's part of a contiguous tensor of total() elements: a view of one dimension.
  at::Tensor of(const at::Tensor& tensor, int rank) const;

 private:
  c10::SmallVector<std::int64_t, 17> begins_;
};

/// Elements [begin, begin + count) of a contiguous tensor: a view of one dimension, without autograd.
at::Tensor elements_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count);

}  // namespace phalanx
