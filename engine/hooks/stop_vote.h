// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "engine/engine.h"
#include "engine/hooks/delayed_vote.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Stops all ranks after the same step, `delay` steps after one of them was asked to stop (delayed_vote.h). In the same
/// way, all ranks learn after the same step that others wait to take part in the run.
class StopVote {
 public:
  /// Both functions are polled once a step: `asked` returns true if this rank was asked to stop, `time_up` if its time
  /// is up. `delay`, `asynchronous`: see DelayedVote. `awaited` is polled as well; it returns true if this rank knows
  /// of others that wait to take part.
  StopVote(
      CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up = [] { return false; },
      std::int64_t delay = 1, bool asynchronous = false, std::function<bool()> awaited = [] { return false; });

  void attach(Engine& engine);

  /// Returns true if the ranks agreed to stop.
  bool stopped() const { return verdict_ >= kTimeUp; }

  /// Returns true if they stopped only because of the time.
  bool time_up() const { return verdict_ == kTimeUp; }

  /// Waits for the vote that was cast last, so that no operation is left when the ranks go on in another group.
  void settle() { vote_.read(); }

  /// Returns true in the step after which the ranks have agreed to let others take part, unless they stop.
  bool awaited() const { return verdict_ == kAwaited; }

 private:
  enum Ballot : std::int64_t { kContinue, kAwaited, kTimeUp, kAsked };  // the greatest wins

  void vote(State& state);

  DelayedVote vote_;
  std::function<bool()> asked_, time_up_, awaited_;
  std::int64_t verdict_ = kContinue;
};

}  // namespace phalanx
