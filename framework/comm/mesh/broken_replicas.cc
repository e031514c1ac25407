// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/mesh/broken_replicas.h"

#include <algorithm>
#include <stdexcept>

namespace phalanx {

std::int64_t ranks_per_replica(const MeshShape& shape) { return shape.product() / shape[Axis::kData]; }

std::vector<Stranded> stranded_ranks(const std::vector<int>& before, const std::vector<int>& left,
                                     std::int64_t ranks_per_replica) {
  const auto size = static_cast<std::size_t>(ranks_per_replica);
  if (ranks_per_replica < 1 || before.size() % size != 0) {
    throw std::invalid_argument("stranded_ranks: the ranks are not whole replicas");
  }
  const auto is_left = [&left](int rank) { return std::ranges::find(left, rank) != left.end(); };
  std::vector<Stranded> stranded;
  for (std::size_t first = 0; first < before.size(); first += size) {
    const std::vector<int> replica(before.begin() + static_cast<std::ptrdiff_t>(first),
                                   before.begin() + static_cast<std::ptrdiff_t>(first + size));
    const auto lost = std::ranges::find_if_not(replica, is_left);
    if (lost == replica.end()) continue;
    for (const int rank : replica) {
      if (is_left(rank)) stranded.push_back({.rank = rank, .lost = *lost});
    }
  }
  return stranded;
}

}  // namespace phalanx
