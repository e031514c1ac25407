// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/sharded/shards.h"

#include <algorithm>
#include <cstdlib>

#include "framework/partition/flat_parameters.h"

namespace phalanx {
namespace {

// Returns the border nearest to `wanted`: the beginning of a parameter, or the end of the bucket.
std::int64_t nearest_border(const Slice& bucket, std::int64_t wanted) {
  std::int64_t best = bucket.values.numel();
  for (const auto& segment : bucket.segments) {
    if (std::abs(segment.begin - wanted) <= std::abs(best - wanted)) best = segment.begin;
  }
  return best;
}

}  // namespace

Shards::Shards(const Slice& bucket, int ranks, Cut cut, int owners) {
  constexpr std::int64_t kStep = FlatParameters::kPartUnit;
  const std::int64_t elements = bucket.values.numel(), steps = (elements + kStep - 1) / kStep;
  const bool anywhere = cut == Cut::kAnywhere &&
                        std::ranges::all_of(bucket.segments, &std::vector<std::int64_t>::empty, &Segment::strides);
  std::int64_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t wanted = std::min(elements, steps * std::min(rank + 1, owners) / owners * kStep);
    const std::int64_t end = anywhere || rank + 1 >= owners
                                 ? wanted
                                 : std::max(begin, nearest_border(bucket, elements * (rank + 1) / owners));
    begins_.push_back(begin);
    counts_.push_back(end - begin);
    begin = end;
  }
}

void ShardedBucket::zero_other_gradients() const {
  const auto begin = shards_.begin(rank_), end = begin + shards_.count(rank_);
  all_.gradients.narrow(0, 0, begin).zero_();
  all_.gradients.narrow(0, end, all_.gradients.numel() - end).zero_();
}

}  // namespace phalanx
