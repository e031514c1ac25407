// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/active_ranks.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace phalanx {

ActiveRanks::ActiveRanks(CommunicatorPtr group)
    : group_(std::move(group)), flags_(at::zeros({group_->size()}, at::kLong)) {}

void ActiveRanks::launch(bool active) {
  flags_.zero_();
  flags_.mutable_data_ptr<std::int64_t>()[group_->rank()] = active ? 1 : 0;
  work_ = group_->all_reduce(flags_, Reduction::kSum);
}

int ActiveRanks::count() const {
  const auto* const flags = flags_.const_data_ptr<std::int64_t>();
  return static_cast<int>(std::accumulate(flags, flags + flags_.numel(), std::int64_t{0}));
}

int ActiveRanks::lowest() const {
  const auto* const flags = flags_.const_data_ptr<std::int64_t>();
  return static_cast<int>(std::find(flags, flags + flags_.numel(), 1) - flags);
}

}  // namespace phalanx
