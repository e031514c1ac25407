#include "engine/engine.h"

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

Step::Watch Engine::watch(const Hooks& hooks, State& state) {
  return [&hooks, &state](Stage stage, const Step::Result& result) {
    state.result = result;
    emit(hooks, event_of(stage), state);
  };
}

State Engine::train(const FlatParameters& parameters, Loader& loader, State state) {
  const auto watched = watch(hooks_, state);
  slices_ = synchronizer_.attach(parameters, optimizer_.cut());
  optimizer_.attach(slices_);
  synchronizer_.attach_state(optimizer_.state());
  emit(hooks_, Event::kStart, state);
  for (; state.epoch < state.epochs && !state.stop; ++state.epoch, state.cursor = 0) {
    loader.start_epoch(state.epoch, state.cursor);
    emit(hooks_, Event::kStartEpoch, state);
    while (!state.stop && loader.next(state.batch)) {
      emit(hooks_, Event::kSample, state);
      state.result = step_.run(state.batch, watched);
      synchronizer_.before_update(state.step);
      optimizer_.update();
      synchronizer_.after_update(state.step);
      ++state.step;
      ++state.cursor;
      emit(hooks_, Event::kUpdate, state);
    }
    emit(hooks_, Event::kEndEpoch, state);
  }
  synchronizer_.finish();
  emit(hooks_, Event::kEnd, state);
  return state;
}

void Engine::test(Loader& loader, State state) {
  const auto watched = watch(test_hooks_, state);
  state.training = false;
  loader.start_epoch(0);
  emit(test_hooks_, Event::kStart, state);
  while (loader.next(state.batch)) {
    emit(test_hooks_, Event::kSample, state);
    state.result = step_.evaluate(state.batch, watched);
  }
  emit(test_hooks_, Event::kEnd, state);
}

}  // namespace phalanx
