// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/batch.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// The events of a run, in the order in which a training step emits them (torchnet's engine, Collobert et al. 2016).
enum class Event {
  kStart,              // on_start
  kStartEpoch,         // on_start_epoch
  kSample,             // on_sample: a batch was loaded
  kForward,            // on_forward: the output was computed
  kForwardCriterion,   // on_forward_criterion: the loss was computed
  kBackwardCriterion,  // on_backward_criterion: the gradient of the output was computed
  kBackward,           // on_backward: all gradients were computed, but not yet synchronized
  kUpdate,             // on_update: the parameters have changed
  kEndEpoch,           // on_end_epoch
  kEnd,                // on_end
};
inline constexpr int kEvents = 10;

/// The phases in which the hooks of one event are called, in this order. A hook says by its phase what it needs to run
/// before and after, so the order in which hooks are registered does not matter, except within a phase.
enum class HookPhase {
  kFirst,            // ends the time of what came before, and ends a run whose numbers are not finite
  kSchedule,         // sets what the step depends on: the weight of the global batch, the learning rate
  kSynchronize,      // exchanges with other ranks and with servers; compares replicas
  kVote,             // agrees with all ranks on stopping
  kMeasure,          // reads meters and writes logs
  kEvaluate,         // evaluates the model, and decides by the result whether the run stops
  kAdapt,            // changes, by what was measured, how the run continues
  kCheckpoint,       // saves the state that all phases above have left; restores it on kStart
  kAfterCheckpoint,  // begins from the restored state; moves state that a checkpoint reads
  kUser,             // hooks of callers, which see the results of everything above; the default
  kLast,             // ends the time that counts as hooks
};

std::string_view to_string(Event event);

/// Returns the event called `name` ("on_sample"). Throws ConfigError with the nearest name if there is none.
Event event_from_name(const std::string& name);

/// The state that hooks see and may change.
struct State {
  std::int64_t epoch = 0;   // of the current step, from 0
  std::int64_t epochs = 0;  // total to train
  std::int64_t step = 0;    // completed updates
  std::int64_t cursor = 0;  // batches taken from the epoch
  bool training = true;     // false in an evaluation
  bool stop = false;        // set by a hook: stop after this step; all ranks must set it after the same step

  /// Set by a hook of kStart if the last step was interrupted in its hooks of kUpdate: they are called from this phase
  /// on before the next step, without the batch and the result.
  std::optional<HookPhase> unfinished{};

  Batch batch{};
  Step::Result result{};  // in pipelines, training results are on one rank; see Step::Result::elsewhere()
};

/// Functions that are called for events: by phase, and within a phase in the order of their registration.
class Hooks {
 public:
  using Hook = std::function<void(State&)>;

  /// Registers a hook. Must not be called by a hook of the same event.
  void on(Event event, HookPhase phase, Hook hook);

  void emit(Event event, State& state) const {
    for (const auto& registered : hooks_[static_cast<int>(event)]) registered.hook(state);
  }

  /// Calls only the hooks from a phase on.
  void emit_from(HookPhase phase, Event event, State& state) const {
    for (const auto& registered : hooks_[static_cast<int>(event)]) {
      if (registered.phase >= phase) registered.hook(state);
    }
  }

  /// Returns a watcher that stores the result of each stage of a step in `state` and emits the stage's event. Both
  /// objects must outlive it.
  Step::Watch watch(State& state) const;

 private:
  struct Registered {
    HookPhase phase;
    Hook hook;
  };

  std::array<std::vector<Registered>, kEvents> hooks_;  // by event, in the order in which they are called
};

}  // namespace phalanx
