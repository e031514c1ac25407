// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "engine/engine.h"
#include "engine/watch/delayed_vote.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Stops all ranks after the same step, `delay` steps after one of them was asked to stop (delayed_vote.h).
class StopVote {
 public:
  /// Both functions are polled once a step: `asked` returns true if this rank was asked to stop, `time_up` if its time
  /// is up. `delay`, `asynchronous`: see DelayedVote.
  StopVote(
      CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up = [] { return false; },
      std::int64_t delay = 1, bool asynchronous = false);

  void attach(Engine& engine);

  /// Returns true if the ranks agreed to stop.
  bool stopped() const { return verdict_ != kContinue; }

  /// Returns true if they stopped only because of the time.
  bool time_up() const { return verdict_ == kTimeUp; }

 private:
  enum Ballot : std::int64_t { kContinue, kTimeUp, kAsked };  // the greatest wins

  void vote(State& state);

  DelayedVote vote_;
  std::function<bool()> asked_, time_up_;
  std::int64_t verdict_ = kContinue;
};

}  // namespace phalanx
