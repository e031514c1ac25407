#include "engine/watch/stop_vote.h"

#include <ATen/ops/full.h>

#include <utility>

namespace phalanx {

StopVote::StopVote(CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up,
                   std::int64_t delay)
    : group_(std::move(group)),
      asked_(std::move(asked)),
      time_up_(std::move(time_up)),
      delay_(static_cast<std::size_t>(delay)) {}

void StopVote::attach(Engine& engine) {
  engine.on(Event::kUpdate, [this](State& state) { vote(state); });
}

void StopVote::vote(State& state) {
  if (pending_.size() == delay_) {
    pending_.front().sent.wait();
    verdict_ = pending_.front().ballot.item<std::int64_t>();
    pending_.pop_front();
  }
  if (verdict_ != kGoOn) {
    state.stop = true;
    return;
  }
  const std::int64_t mine = asked_() ? kAsked : time_up_() ? kTimeUp : kGoOn;
  auto& cast = pending_.emplace_back(Cast{.ballot = at::full({1}, mine, at::kLong), .sent = {}});
  cast.sent = group_->all_reduce(cast.ballot, Reduction::kMax);
}

}  // namespace phalanx
