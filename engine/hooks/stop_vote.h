// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "engine/engine.h"
#include "engine/hooks/delayed_vote.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Stops all ranks after the same step, `delay` steps after one of them was asked to stop (delayed_vote.h).
class StopVote {
 public:
  /// Both functions are polled once a step: `asked` returns true if this rank was asked to stop, `time_up` if its time
  /// is up. `delay`, `apart`: see DelayedVote.
  StopVote(
      CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up = [] { return false; },
      std::int64_t delay = 1, bool apart = false);

  void attach(Engine& engine);

  /// Returns true if the ranks agreed to stop.
  bool stopped() const { return verdict_ != kGoOn; }

  /// Returns true if they stopped only because of the time.
  bool time_up() const { return verdict_ == kTimeUp; }

 private:
  enum Ballot : std::int64_t { kGoOn, kTimeUp, kAsked };  // the greatest wins

  void vote(State& state);

  DelayedVote vote_;
  std::function<bool()> asked_, time_up_;
  std::int64_t verdict_ = kGoOn;
};

}  // namespace phalanx
