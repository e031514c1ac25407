// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace phalanx::kernels {

/// The least number of elements for which another thread pays.
inline constexpr std::int64_t kElementsAThread = 1 << 14;

/// Returns true for a tensor that the vector code for planes accepts: a non-empty float32 tensor in row-major order, so
/// that the elements of a channel lie one after the other.
inline bool is_contiguous_float(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && x.layout() == at::kStrided && x.numel() > 0 && x.is_contiguous() &&
         x.suggest_memory_format() == at::MemoryFormat::Contiguous && !x.is_neg();
}

/// Returns true if there is a number for each of the two axes of an image, or one for both.
inline bool is_for_two_axes(at::IntArrayRef numbers) { return numbers.size() == 1 || numbers.size() == 2; }

/// Returns the number for `axis`, 0 or 1. Requires is_for_two_axes().
inline std::int64_t of_axis(at::IntArrayRef numbers, std::size_t axis) {
  return numbers.size() == 1 ? numbers[0] : numbers[axis];
}

}  // namespace phalanx::kernels
