// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace phalanx {

/// Where part `part` of `parts` begins in a row of `length`: nearly equal parts, of which the first length % parts are
/// one longer. That behind the last one begins at `length`. `parts` is at least 1.
constexpr std::int64_t part_begin(std::int64_t length, std::int64_t parts, std::int64_t part) {
  return length / parts * part + std::min(part, length % parts);
}

/// How long each of these parts is.
inline std::vector<std::int64_t> nearly_equal_counts(std::int64_t length, std::int64_t parts) {
  std::vector<std::int64_t> counts;
  for (std::int64_t part = 0; part < parts; ++part) {
    counts.push_back(part_begin(length, parts, part + 1) - part_begin(length, parts, part));
  }
  return counts;
}

/// Part `part` of a list, of `parts` such ones.
template <class Item>
std::vector<Item> part_of(const std::vector<Item>& list, std::int64_t part, std::int64_t parts) {
  const auto length = static_cast<std::int64_t>(list.size());
  return {list.begin() + part_begin(length, parts, part), list.begin() + part_begin(length, parts, part + 1)};
}

}  // namespace phalanx
