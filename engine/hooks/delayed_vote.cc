// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/delayed_vote.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "framework/comm/operations/measured_inputs.h"

namespace phalanx {
namespace {

constexpr int kVoteTag = kMaxTag - 1;  // kMaxTag is used for clocks

}  // namespace

DelayedVote::DelayedVote(CommunicatorPtr group, std::int64_t delay, bool asynchronous)
    : group_(std::move(group)), by_messages_(asynchronous || delay > 1), pending_(static_cast<std::size_t>(delay)) {
  for (auto& one : pending_) one.ballots = at::zeros({by_messages_ ? group_->size() : 1}, at::kLong);
}

std::int64_t DelayedVote::read() {
  auto& [ballots, sent] = pending_[oldest_];
  wait_all(sent);
  sent.clear();
  const auto* const begin = ballots.data_ptr<std::int64_t>();
  return *std::max_element(begin, begin + ballots.numel());
}

void DelayedVote::cast(std::int64_t ballot) {
  const MeasuredInputs measured;  // whether a signal has come, or the time is up
  auto& oldest = pending_[oldest_];
  if (by_messages_) {
    oldest.ballots.data_ptr<std::int64_t>()[group_->rank()] = ballot;
    send_to_all(oldest);
  } else {
    *oldest.ballots.data_ptr<std::int64_t>() = ballot;
    oldest.sent.push_back(group_->all_reduce(oldest.ballots, Reduction::kMax));
  }
  oldest_ = (oldest_ + 1) % pending_.size();
}

void DelayedVote::send_to_all(PendingVote& cast) const {
  const at::Tensor own = cast.ballots.narrow(0, group_->rank(), 1);
  for (int peer = 0; peer < group_->size(); ++peer) {
    if (peer == group_->rank()) continue;
    cast.sent.push_back(group_->send(own, peer, kVoteTag));
    cast.sent.push_back(group_->recv(cast.ballots.narrow(0, peer, 1), peer, kVoteTag));
  }
}

}  // namespace phalanx
