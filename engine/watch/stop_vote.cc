#include "engine/watch/stop_vote.h"

#include <ATen/ops/zeros.h>

namespace phalanx {

StopVote::StopVote(CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up)
    : group_(std::move(group)),
      asked_(std::move(asked)),
      time_up_(std::move(time_up)),
      ballot_(at::zeros({1}, at::kLong)) {}

void StopVote::attach(Engine& engine) {
  engine.on(Event::kUpdate, [this](State& state) { vote(state); });
}

void StopVote::vote(State& state) {
  pending_.wait();
  auto& ballot = *ballot_.data_ptr<std::int64_t>();
  verdict_ = ballot;
  if (verdict_ != kGoOn) {
    state.stop = true;
    return;
  }
  ballot = asked_() ? kAsked : time_up_() ? kTimeUp : kGoOn;
  pending_ = group_->all_reduce(ballot_, Reduction::kMax);
}

}  // namespace phalanx
