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

/// Non-empty ranges in ascending order that do not overlap.
using ElementRanges = std::vector<ElementRange>;

/// Returns the part of the ranges that lies in [begin, begin + count), relative to `begin`.
ElementRanges ranges_within(const ElementRanges& ranges, std::int64_t begin, std::int64_t count);

/// Returns the ranges of elements of a byte tensor [n] that are 0.
ElementRanges ranges_of_zeros(const at::Tensor& bytes);

/// Encodes the ranges as the text of a message: 16 bytes per range, little-endian. No ranges give an empty text.
std::string to_text(const ElementRanges& ranges);

/// Decodes the text that to_text() has written for a tensor with `elements` elements. Throws Error for any other text.
ElementRanges ranges_of_text(const std::string& text, std::int64_t elements);

/// Copies of some elements of a few tensors. After the tensors have been overwritten, restore() restores the elements.
class SavedElements {
 public:
  /// The tensors are [n], and the ranges lie within them.
  SavedElements(const ElementRanges& ranges, const std::vector<at::Tensor>& tensors);

  void restore() const;

 private:
  std::vector<at::Tensor> elements_, copies_;  // views of the elements, and copies of their former values
};

}  // namespace phalanx::ps
