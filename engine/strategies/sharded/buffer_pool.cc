// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/sharded/buffer_pool.h"

#include <algorithm>
#include <utility>

namespace phalanx {

void BufferPool::make_room_for(const Bucket& bucket) {
  elements_ = std::max(elements_, bucket.values.numel());
  options_ = bucket.values.options().requires_grad(false);
}

at::Tensor BufferPool::take() {
  if (free_.empty()) {
    const at::Tensor buffer = group_->allocate({elements_}, options_);
    bytes_ += static_cast<std::int64_t>(buffer.nbytes());
    return buffer;
  }
  at::Tensor buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

}  // namespace phalanx
