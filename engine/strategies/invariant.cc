// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/invariant.h"

#include <cstddef>

#include "engine/strategies/initial_values.h"

namespace phalanx {

std::vector<Slice> Invariant::attach(const FlatParameters& parameters, Cut) {
  slices_ = broadcast_all(parameters, *group_);
  sums_.assign(slices_.size(), CanonicalSum(group_, shards_));
  return slices_;
}

void Invariant::take_gradients(int shard) {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    if (local_gradients_) local_gradients_(slices_[i].gradients);
    sums_[i].add(shard, slices_[i].gradients);
    slices_[i].gradients.zero_();
  }
}

void Invariant::before_update(std::int64_t) {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    sums_[i].finish(slices_[i].gradients);
    slices_[i].gradients.div_(static_cast<double>(shards_));
  }
}

}  // namespace phalanx
