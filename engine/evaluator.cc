// SPDX-License-Identifier: Apache-2.0
#include "engine/evaluator.h"

namespace phalanx {

void Evaluator::run(Loader& loader, State state) const {
  const auto watched = hooks_.watch(state);
  state.training = false;
  loader.start_epoch(0);
  hooks_.emit(Event::kStart, state);
  while (loader.next(state.batch)) {
    hooks_.emit(Event::kSample, state);
    state.result = step_.evaluate(state.batch, watched);
  }
  hooks_.emit(Event::kEnd, state);
}

}  // namespace phalanx
