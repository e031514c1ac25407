// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// What hooks can wait for, in the order in which a training step meets them (torchnet's engine, Collobert et al.
/// 2016).
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

}  // namespace phalanx
