// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "engine/optim/optimizer.h"
#include "engine/strategies/strategy.h"
#include "framework/comm/communicator.h"
#include "framework/observe/times/step_clock.h"

namespace phalanx {

/// The way in which all ranks carry out a step.
enum class Course {
  kLaunch,          // they launch everything
  kReplay,          // they replay the graph that they have recorded last
  kRecord,          // they record a graph of the whole step, and replay it
  kRecordBackward,  // they record a graph that ends with backward, replay it, and launch the update
};

/// The part of a step that follows backward, in the form in which a graph of the device (DeviceGraph) contains it: the
/// exchange of gradients, which a strategy may have begun in backward, and the update. Its replays are ordinary steps
/// for the strategy and the optimizer.
///
/// NCCL demands that an operation is in the graph of each rank, or of none. So the ranks agree on the course of each
/// step before it, although their batches may differ.
class RecordedUpdate {
 public:
  /// The strategy must have StrategyTraits::in_graph. Its groups, and those that the optimizer uses, must be of
  /// Communicator::in_graphs(). `required`: the strategy communicates within backward, so a graph of backward must
  /// contain the update as well. `control`: the ranks that agree on each step, all of which must have such an object;
  /// null: this rank is alone. Everything must outlive the object.
  RecordedUpdate(Strategy& strategy, Optimizer& optimizer, StepClock& clock, CommunicatorPtr control, bool required)
      : strategy_(strategy), optimizer_(optimizer), clock_(clock), control_(std::move(control)), required_(required) {}

  /// Returns true after the first update of parameters, which is never recorded. May wait for the device.
  bool is_ready() const { return optimizer_.updates() > 0; }

  /// Returns what all ranks do with the next step: they replay it if each has a graph for its batch, record it if each
  /// may record its batch, and launch it otherwise. A rank that has a graph for its batch must be able to record it,
  /// too. Must be called before each step. Collective: sends 24 bytes, and its time counts as communication. If a graph
  /// that they record cannot contain the update of some rank, logs why, once; if it is required, throws ConfigError on
  /// all ranks instead.
  Course agree(bool has_graph, bool may_record);

  /// Writes what the recorded work reads from the device. Must be called before record() and before each replay.
  void prepare() { optimizer_.prepare_replay(); }

  /// Puts the rest of a step on the current stream, of which a graph is being recorded. Its backward has been put
  /// there.
  void record();

  /// Must be called after each replay was launched. Collective in the groups of the strategy, like an update.
  void replayed() { optimizer_.replayed(); }

 private:
  void explain_graph_without_update(const std::string& why);

  Strategy& strategy_;
  Optimizer& optimizer_;
  StepClock& clock_;
  CommunicatorPtr control_;  // may be null
  bool required_;
  bool said_why_not_ = false;
};

/// Logs that graphs of steps end with backward, and why.
void log_graph_without_update(const std::string& why);

}  // namespace phalanx
