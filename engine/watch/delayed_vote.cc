#include "engine/watch/delayed_vote.h"

#include <ATen/ops/zeros.h>

#include <utility>

namespace phalanx {

DelayedVote::DelayedVote(CommunicatorPtr group, std::int64_t delay)
    : group_(std::move(group)), cast_(static_cast<std::size_t>(delay)) {
  for (auto& one : cast_) one.ballot = at::zeros({1}, at::kLong);
}

std::int64_t DelayedVote::read() {
  cast_[oldest_].sent.wait();
  return *cast_[oldest_].ballot.data_ptr<std::int64_t>();
}

void DelayedVote::cast(std::int64_t ballot) {
  auto& oldest = cast_[oldest_];
  *oldest.ballot.data_ptr<std::int64_t>() = ballot;
  oldest.sent = group_->all_reduce(oldest.ballot, Reduction::kMax);
  oldest_ = (oldest_ + 1) % cast_.size();
}

}  // namespace phalanx
