#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/engine.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Stops all ranks after the same step when one of them is asked to stop.
///
/// A vote is launched after every step and read `delay` steps later, by when all ranks have long cast theirs: it costs
/// a small all-reduce and no waiting, unless a rank is that many steps ahead of the slowest.
class StopVote {
 public:
  /// Polled once a step: whether somebody has asked for it, whether the time is up. `delay`: at least 1.
  StopVote(
      CommunicatorPtr group, std::function<bool()> asked, std::function<bool()> time_up = [] { return false; },
      std::int64_t delay = 1);

  void attach(Engine& engine);

  /// Whether the ranks agreed to stop.
  bool stopped() const { return verdict_ != kGoOn; }

  /// Whether they stopped because of the time alone.
  bool time_up() const { return verdict_ == kTimeUp; }

 private:
  enum Ballot : std::int64_t { kGoOn, kTimeUp, kAsked };  // the greatest wins

  void vote(State& state);

  struct Cast {
    at::Tensor ballot;  // [1] int64
    Work sent;
  };

  CommunicatorPtr group_;
  std::function<bool()> asked_, time_up_;
  std::vector<Cast> cast_;  // the last `delay`, in turn
  std::size_t oldest_ = 0;  // of them
  std::int64_t verdict_ = kGoOn;
};

}  // namespace phalanx
