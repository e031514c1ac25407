// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "framework/comm/operations/part_layout.h"

namespace phalanx::shared_memory {

// Sizes and offsets in bytes of the parts of a tensor whose elements have `item` bytes.

inline std::size_t bytes_of(const PartLayout& parts, int rank, std::size_t item) {
  return static_cast<std::size_t>(parts.count(rank)) * item;
}

inline std::size_t begin_of(const PartLayout& parts, int rank, std::size_t item) {
  return static_cast<std::size_t>(parts.begin(rank)) * item;
}

inline std::size_t all_of(const PartLayout& parts, std::size_t item) {
  return static_cast<std::size_t>(parts.total()) * item;
}

inline std::size_t largest_part(const PartLayout& parts, std::size_t item) {
  std::size_t most = 0;
  for (int rank = 0; rank < parts.ranks(); ++rank) most = std::max(most, bytes_of(parts, rank, item));
  return most;
}

}  // namespace phalanx::shared_memory
