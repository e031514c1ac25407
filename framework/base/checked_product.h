// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace phalanx {

/// Returns `factor` times the product of sizes that a file or a peer states: how many elements a tensor has or, if
/// `factor` is the size of an element, how many bytes. Returns nothing if a size is negative or the product does not
/// fit into an int64. If one size is 0, the product is 0, but the product of the others must still fit, because strides
/// contain it. `factor` is at least 1.
inline std::optional<std::int64_t> checked_product(std::span<const std::int64_t> sizes, std::int64_t factor = 1) {
  bool empty = false;
  for (const auto size : sizes) {
    if (size < 0 || (size > 0 && __builtin_mul_overflow(factor, size, &factor))) return std::nullopt;
    empty |= size == 0;
  }
  return empty ? 0 : factor;
}

}  // namespace phalanx
