// SPDX-License-Identifier: Apache-2.0
#include "launch/job/tune_in_first_steps.h"

#include <cstdint>
#include <utility>

namespace phalanx {

// Hooks of kLast are called when those of callers have run, so a step's record has everything that a step does.
std::function<void(Engine&)> tune_in_first_steps(std::shared_ptr<Tuner> tuner, CommunicatorPtr world) {
  return [tuner = std::move(tuner), world = std::move(world)](Engine& engine) {
    const auto tune_after = std::make_shared<std::int64_t>(0);
    engine.on(Event::kStart, HookPhase::kLast, [=](State& state) {
      const bool resumed = state.step >= kStepsBeforeTuning;
      if (resumed && tuner->adopt(*world)) return;
      *tune_after = resumed ? state.step + kStepsBeforeTuning : kStepsBeforeTuning;
      tuner->record();
    });
    engine.on(Event::kUpdate, HookPhase::kLast, [=](State& state) {
      if (state.step == *tune_after) tuner->tune(*world);
    });
  };
}

}  // namespace phalanx
