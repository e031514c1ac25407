// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace phalanx {

/// Returns where part `part` begins when a row of `length` is divided into `parts` nearly equal parts, of which the
/// first length % parts are one longer than the rest. The part after the last one begins at `length`. `parts` is at
/// least 1.
constexpr std::int64_t part_begin(std::int64_t length, std::int64_t parts, std::int64_t part) {
  return length / parts * part + std::min(part, length % parts);
}

/// Returns the lengths of these parts.
inline std::vector<std::int64_t> nearly_equal_counts(std::int64_t length, std::int64_t parts) {
  std::vector<std::int64_t> counts;
  for (std::int64_t part = 0; part < parts; ++part) {
    counts.push_back(part_begin(length, parts, part + 1) - part_begin(length, parts, part));
  }
  return counts;
}

/// Returns part `part` when a list is divided into `parts` such parts.
template <class Item>
std::vector<Item> part_of(const std::vector<Item>& list, std::int64_t part, std::int64_t parts) {
  const auto length = static_cast<std::int64_t>(list.size());
  return {list.begin() + part_begin(length, parts, part), list.begin() + part_begin(length, parts, part + 1)};
}

}  // namespace phalanx
