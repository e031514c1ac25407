// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "datasets/random_stream.h"
#include "datasets/shuffle.h"

namespace phalanx {

/// Returns the indices of at most `count` of `size` samples, drawn by `seed`, in ascending order.
inline std::vector<std::int64_t> sample_some(std::int64_t size, std::int64_t count, std::int64_t seed) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(size));
  std::iota(indices.begin(), indices.end(), 0);
  if (count >= size) return indices;
  shuffle(indices, RandomStream(static_cast<std::uint64_t>(seed)));
  indices.resize(static_cast<std::size_t>(count));
  std::ranges::sort(indices);
  return indices;
}

}  // namespace phalanx
