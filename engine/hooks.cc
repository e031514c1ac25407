// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks.h"

#include <algorithm>
#include <utility>

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

void Hooks::on(Event event, HookPhase phase, Hook hook) {
  auto& all = hooks_[static_cast<int>(event)];
  const auto next_phase = std::ranges::upper_bound(all, phase, {}, &Registered::phase);
  all.insert(next_phase, {phase, std::move(hook)});
}

Step::Watch Hooks::watch(State& state) const {
  return [this, &state](Stage stage, const Step::Result& result) {
    state.result = result;
    emit(event_of(stage), state);
  };
}

}  // namespace phalanx
