// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/slice.h"

#include <stdexcept>

#include "framework/base/parts.h"

namespace phalanx {

std::vector<Segment> row_shards(const std::vector<Segment>& parameters, int rank, int ranks) {
  std::vector<Segment> shards;
  std::int64_t end = 0;
  for (const auto& parameter : parameters) {
    if (!parameter.whole() || !parameter.strides.empty()) {
      throw std::invalid_argument(parameter.name +
                                  " cannot be sharded by rows: it is in parts, or is not stored row by row");
    }
    const std::int64_t rows = parameter.shape.empty() ? 1 : parameter.shape[0];
    if (rows == 0) continue;
    const std::int64_t row = parameter.count / rows;
    const auto first = part_begin(rows, ranks, rank) * row, last = part_begin(rows, ranks, rank + 1) * row;
    if (first == last) continue;
    shards.push_back({parameter.name, parameter.shape, end, last - first, first});
    end += last - first;
  }
  return shards;
}

}  // namespace phalanx
