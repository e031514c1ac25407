#include "engine/watch/stop_vote.h"

#include <ATen/ops/zeros.h>

#include <utility>

namespace phalanx {

StopVote::StopVote(CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up,
                   std::int64_t delay)
    : group_(std::move(group)),
      asked_(std::move(asked)),
      time_up_(std::move(time_up)),
      cast_(static_cast<std::size_t>(delay)) {
  for (auto& one : cast_) one.ballot = at::zeros({1}, at::kLong);
}

void StopVote::attach(Engine& engine) {
  engine.on(Event::kUpdate, [this](State& state) { vote(state); });
}

void StopVote::vote(State& state) {
  Cast& oldest = cast_[oldest_];
  oldest.sent.wait();
  auto& ballot = *oldest.ballot.data_ptr<std::int64_t>();
  verdict_ = ballot;
  if (verdict_ != kGoOn) {
    state.stop = true;
    return;
  }
  ballot = asked_() ? kAsked : time_up_() ? kTimeUp : kGoOn;
  oldest.sent = group_->all_reduce(oldest.ballot, Reduction::kMax);
  oldest_ = (oldest_ + 1) % cast_.size();
}

}  // namespace phalanx
