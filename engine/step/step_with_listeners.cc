// SPDX-License-Identifier: Apache-2.0
#include "engine/step/step_with_listeners.h"

#include <ranges>

namespace phalanx {

Step::Result StepWithListeners::run(const Batch& batch, const Watch& watch) {
  for (const auto& listener : listeners_) listener->before_step(batch);
  Result result = inner_.run(batch, [this, &watch](Stage stage, const Result& so_far) {
    if (stage == Stage::kBackward) after_backward();
    watch(stage, so_far);
  });
  for (const auto& listener : listeners_ | std::views::reverse) listener->after_step();
  return result;
}

Step::Result StepWithListeners::evaluate(const Batch& batch, const Watch& watch) {
  for (const auto& listener : listeners_) listener->before_evaluation();
  return inner_.evaluate(batch, watch);
}

void StepWithListeners::after_backward() {
  for (const auto& listener : listeners_ | std::views::reverse) listener->after_backward();
}

}  // namespace phalanx
