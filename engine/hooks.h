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
  kSample,             // on_sample: a batch is there
  kForward,            // on_forward: the output is there
  kForwardCriterion,   // on_forward_criterion: the loss is there
  kBackwardCriterion,  // on_backward_criterion: the gradient of the output is there
  kBackward,           // on_backward: the gradients of all parameters are there, not yet agreed between ranks
  kUpdate,             // on_update: the parameters have changed
  kEndEpoch,           // on_end_epoch
  kEnd,                // on_end
};
inline constexpr int kEvents = 10;

std::string_view to_string(Event event);

/// The event called `name` ("on_sample"). Throws ConfigError with the nearest name otherwise.
Event event_from_name(const std::string& name);

/// What hooks see and may change.
struct State {
  std::int64_t epoch = 0;   // of the current step, from 0
  std::int64_t epochs = 0;  // to train in all
  std::int64_t step = 0;    // updates done
  std::int64_t cursor = 0;  // batches taken of the epoch
  bool training = true;     // false in an evaluation
  bool stop = false;        // set by a hook: leave after this step; all ranks must set it after the same step
  Batch batch{};
  Step::Result result{};  // of a training step of a pipeline, on one of its ranks: see Step::Result::elsewhere()
};

/// Functions that wait for events, called in the order of their registration.
class Hooks {
 public:
  using Hook = std::function<void(State&)>;

  void on(Event event, Hook hook) { hooks_[static_cast<int>(event)].push_back(std::move(hook)); }

  void emit(Event event, State& state) const {
    for (const auto& hook : hooks_[static_cast<int>(event)]) hook(state);
  }

  /// Puts the result of each stage of a step into `state` and emits the stage's event. Both must outlive it.
  Step::Watch watch(State& state) const;

 private:
  std::array<std::vector<Hook>, kEvents> hooks_;
};

}  // namespace phalanx
