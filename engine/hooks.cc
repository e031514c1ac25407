// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks.h"

namespace phalanx {
namespace {

Event event_of(Stage stage) {
  switch (stage) {
    case Stage::kForward:
      return Event::kForward;
    case Stage::kForwardCriterion:
      return Event::kForwardCriterion;
    case Stage::kBackwardCriterion:
      return Event::kBackwardCriterion;
    case Stage::kBackward:
      break;
  }
  return Event::kBackward;
}

}  // namespace

Step::Watch Hooks::watch(State& state) const {
  return [this, &state](Stage stage, const Step::Result& result) {
    state.result = result;
    emit(event_of(stage), state);
  };
}

}  // namespace phalanx
