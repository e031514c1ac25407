#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "engine/engine.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Stops all ranks after the same step when one of them is asked to stop.
///
/// A vote is launched after every step and read after the next one, by when all ranks have long cast theirs: it costs a
/// small all-reduce and no waiting.
class StopVote {
 public:
  /// Polled once a step: whether somebody has asked for it, whether the time is up.
  StopVote(
      CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up = [] { return false; });

  void attach(Engine& engine);

  /// Whether the ranks agreed to stop.
  bool stopped() const { return verdict_ != kGoOn; }

  /// Whether they stopped because of the time alone.
  bool time_up() const { return verdict_ == kTimeUp; }

 private:
  enum Ballot : std::int64_t { kGoOn, kTimeUp, kAsked };  // the greatest wins

  void vote(State& state);

  CommunicatorPtr group_;
  std::function<bool()> asked_, time_up_;
  at::Tensor ballot_;  // [1] int64
  Work pending_;
  std::int64_t verdict_ = kGoOn;
};

}  // namespace phalanx
