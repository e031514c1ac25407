// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
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
  Batch batch{};
  Step::Result result{};  // in pipelines, training results are on one rank; see Step::Result::elsewhere()
};

/// Functions that are called for events, in the order of their registration.
class Hooks {
 public:
  using Hook = std::function<void(State&)>;

  void on(Event event, Hook hook) { hooks_[static_cast<int>(event)].push_back(std::move(hook)); }

  void emit(Event event, State& state) const {
    for (const auto& hook : hooks_[static_cast<int>(event)]) hook(state);
  }

  /// Returns a watcher that stores the result of each stage of a step in `state` and emits the stage's event. Both
  /// objects must outlive it.
  Step::Watch watch(State& state) const;

 private:
  std::array<std::vector<Hook>, kEvents> hooks_;
};

}  // namespace phalanx
