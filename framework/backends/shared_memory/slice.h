// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/location.h"

namespace phalanx::shared_memory {

struct Slice {
  std::int64_t begin = 0, count = 0;
};

/// Returns the slice of a rank if `count` elements of `item` bytes are divided among `size` ranks. Slices are nearly
/// equal, and each but the last is a whole number of cache lines, so that no two ranks write to the same line.
inline Slice slice_of(std::int64_t count, std::size_t item, int rank, int size) {
  const auto per_line = static_cast<std::int64_t>(kLine / item);
  const std::int64_t lines = (count + per_line - 1) / per_line;
  const std::int64_t begin = std::min(count, lines * rank / size * per_line);
  const std::int64_t end = std::min(count, lines * (rank + 1) / size * per_line);
  return {begin, end - begin};
}

}  // namespace phalanx::shared_memory
