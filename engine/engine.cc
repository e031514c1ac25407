// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <utility>

namespace phalanx {
State Engine::train(const FlatParameters& parameters, Loader& loader, State state) {
  const auto watched = hooks_.watch(state);
  slices_ = strategy_.attach(parameters, optimizer_.cut());
  optimizer_.attach(slices_);
  strategy_.attach_state(optimizer_.state());
  hooks_.emit(Event::kStart, state);
  for (; state.epoch < state.epochs && !state.stop; ++state.epoch, state.cursor = 0) {
    loader.start_epoch(state.epoch, state.cursor);
    hooks_.emit(Event::kStartEpoch, state);
    if (const auto phase = std::exchange(state.unfinished, std::nullopt)) {
      hooks_.emit_from(*phase, Event::kUpdate, state);
    }
    while (!state.stop && loader.next(state.batch)) {
      hooks_.emit(Event::kSample, state);
      state.result = step_.run(state.batch, watched);
      if (!state.result.updated) {
        strategy_.before_update(state.step);
        optimizer_.update();
      }
      strategy_.after_update(state.step);
      ++state.step;
      ++state.cursor;
      hooks_.emit(Event::kUpdate, state);
    }
    hooks_.emit(Event::kEndEpoch, state);
  }
  strategy_.finish();
  hooks_.emit(Event::kEnd, state);
  return state;
}

}  // namespace phalanx
