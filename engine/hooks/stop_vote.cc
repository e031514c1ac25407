// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/stop_vote.h"

#include <utility>

namespace phalanx {

StopVote::StopVote(CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up,
                   std::int64_t delay, bool asynchronous, std::function<bool()> awaited)
    : vote_(std::move(group), delay, asynchronous),
      asked_(std::move(asked)),
      time_up_(std::move(time_up)),
      awaited_(std::move(awaited)) {}

void StopVote::attach(Engine& engine) {
  engine.on(Event::kUpdate, HookPhase::kVote, [this](State& state) { vote(state); });
}

void StopVote::vote(State& state) {
  verdict_ = vote_.read();
  if (stopped()) {
    state.stop = true;
    return;
  }
  vote_.cast(asked_() ? kAsked : time_up_() ? kTimeUp : awaited_() ? kAwaited : kContinue);
}

}  // namespace phalanx
