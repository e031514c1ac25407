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
  /// `asked` is polled once a step: a signal came, the time is up.
  StopVote(CommunicatorPtr group, std::function<bool()> asked);

  void attach(Engine& engine);

  /// Whether the ranks agreed to stop.
  bool stopped() const { return stopped_; }

 private:
  void vote(State& state);

  CommunicatorPtr group_;
  std::function<bool()> asked_;
  at::Tensor ballot_;  // [1] int64: 1 = stop
  Work pending_;
  bool stopped_ = false;
};

}  // namespace phalanx
