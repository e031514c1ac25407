// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "engine/checkpoint/run_state.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using Holders = std::map<ParameterRange, std::vector<int>>;

Holders holders_of(const std::vector<std::vector<ParameterRange>>& held) {
  Holders holders;
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    for (const auto& range : held[rank]) holders[range].push_back(static_cast<int>(rank));
  }
  return holders;
}

void check_complete(const Holders& holders, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> ends(sizes.size(), 0);
  for (const auto& [range, ranks] : holders) {  // sorted by parameter and offset
    auto& end = ends.at(static_cast<std::size_t>(range.parameter));
    if (range.offset != end) {
      throw Error("ranks hold parts of parameter " + std::to_string(range.parameter) +
                  " that overlap or leave a gap at its element " + std::to_string(end) + ", so it cannot be saved");
    }
    end += range.count;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (ends[i] == sizes[i]) continue;
    throw Error("ranks hold " + std::to_string(ends[i]) + " of the " + std::to_string(sizes[i]) +
                " elements of parameter " + std::to_string(i) + ", so it cannot be saved");
  }
}

}  // namespace

RangeWriters assign_writers(const std::vector<std::vector<ParameterRange>>& held,
                            const std::vector<std::int64_t>& sizes) {
  const Holders holders = holders_of(held);
  check_complete(holders, sizes);
  std::vector<ParameterRange> ranges;
  for (const auto& [range, ranks] : holders) ranges.push_back(range);
  std::ranges::stable_sort(ranges, std::greater(), &ParameterRange::count);
  std::vector<std::int64_t> loads(held.size(), 0);
  RangeWriters writers;
  for (const auto& range : ranges) {
    const auto& ranks = holders.at(range);
    const int owner =
        *std::ranges::min_element(ranks, {}, [&](int rank) { return loads[static_cast<std::size_t>(rank)]; });
    loads[static_cast<std::size_t>(owner)] += range.count;
    writers[range] = owner;
  }
  return writers;
}

}  // namespace phalanx
