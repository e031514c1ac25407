// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/part_layout.h"

namespace phalanx {

PartLayout::PartLayout(Counts counts, int ranks, std::int64_t total) : begins_(static_cast<std::size_t>(ranks) + 1) {
  for (int rank = 0; rank < ranks; ++rank) {
    begins_[rank + 1] = begins_[rank] + (counts.empty() ? total / ranks : counts[rank]);
  }
}

at::Tensor PartLayout::of(const at::Tensor& tensor, int rank) const {
  return elements_of(tensor, begin(rank), count(rank));
}

at::Tensor elements_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count) {
  return tensor.detach().view({-1}).narrow(0, begin, count);
}

}  // namespace phalanx
