// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/optim/optimizer.h"
#include "engine/strategies/strategy.h"
#include "framework/observe/times/step_clock.h"

namespace phalanx {

/// The part of a step that follows backward, in the form in which a graph of the device (DeviceGraph) contains it: the
/// exchange of gradients, which a strategy may have begun in backward, and the update. Its replays are ordinary steps
/// for the strategy and the optimizer. Each rank decides by itself whether it replays a step; docs/gpu.md says where
/// ranks differ.
class RecordedUpdate {
 public:
  /// The strategy must have StrategyTraits::in_graph. Its groups, and those that the optimizer uses, must be of
  /// Communicator::in_graphs(). `required`: the strategy communicates within backward, so a graph of backward must
  /// contain the update as well. Everything must outlive the object.
  RecordedUpdate(Strategy& strategy, Optimizer& optimizer, StepClock& clock, bool required)
      : strategy_(strategy), optimizer_(optimizer), clock_(clock), required_(required) {}

  /// Returns true after the first update of parameters, which is never recorded. May wait for the device.
  bool is_ready() const { return optimizer_.updates() > 0; }

  /// Returns true if a graph that is recorded now can contain the update. Otherwise logs why, once, and throws
  /// ConfigError instead if it is required.
  bool can_be_recorded();

  /// Writes what the recorded work reads from the device. Must be called before record() and before each replay.
  void prepare() { optimizer_.prepare_replay(); }

  /// Puts the rest of a step on the current stream, of which a graph is being recorded. Its backward has been put
  /// there.
  void record();

  /// Must be called after each replay was launched. Collective in the groups of the strategy, like an update.
  void replayed() { optimizer_.replayed(); }

 private:
  Strategy& strategy_;
  Optimizer& optimizer_;
  StepClock& clock_;
  bool required_;
  bool said_why_not_ = false;
};

/// Logs that graphs of steps end with backward, and why.
void log_graph_without_update(const std::string& why);

}  // namespace phalanx
