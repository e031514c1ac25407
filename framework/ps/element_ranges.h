// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::ps {

/// Elements [begin, end) of a tensor.
struct ElementRange {
  std::int64_t begin = 0, end = 0;

  bool operator==(const ElementRange&) const = default;
};

/// Ranges that hold at least one element each, in ascending order, none of which overlap.
using ElementRanges = std::vector<ElementRange>;

/// The part of the ranges that lies in [begin, begin + count), counted from `begin`.
ElementRanges ranges_within(const ElementRanges& ranges, std::int64_t begin, std::int64_t count);

/// The ranges of elements of a byte tensor [n] that are 0.
ElementRanges ranges_of_zeros(const at::Tensor& bytes);

/// The ranges as the text of a message: 16 bytes each, little-endian. No ranges are an empty text.
std::string to_text(const ElementRanges& ranges);

/// Reads what to_text() has written for a tensor of so many elements. Throws Error for anything else.
ElementRanges ranges_of_text(const std::string& text, std::int64_t elements);

/// Copies of some elements of a few tensors, so that these can be written as a whole and the elements put back.
class KeptElements {
 public:
  /// The tensors are [n], and the ranges lie within them.
  KeptElements(const ElementRanges& ranges, const std::vector<at::Tensor>& tensors);

  void put_back() const;

 private:
  std::vector<at::Tensor> elements_, copies_;  // as views, and what they were
};

}  // namespace phalanx::ps
