// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/step_progress.h"

#include <ATen/core/grad_mode.h>

#include <cstddef>

#include "framework/parallel/random_state.h"
#include "models/model.h"

namespace phalanx {

void StepProgress::follow(Engine& engine) {
  engine.on(Event::kSample, HookPhase::kFirst, [this](State& state) { begin_step(state); });
  engine.on(Event::kUpdate, HookPhase::kFirst, [this](State& state) {
    in_step_ = false;
    position_ = run_.position_of(state);
    stage_ = StepStage::kUpdated;
  });
  engine.on(Event::kUpdate, HookPhase::kAdapt, [this](State&) { stage_ = StepStage::kEvaluated; });
  engine.on(Event::kUpdate, HookPhase::kLast, [this](State&) { stage_ = StepStage::kDone; });
  engine.on(Event::kEndEpoch, HookPhase::kLast, [this](State& state) {
    const bool ends = run_.length.ends_epoch(state.epoch, state.cursor) || state.step >= run_.length.steps;
    if (ends) position_ = {state.step, state.epoch + 1, 0};
  });
}

// Keeps what the step changes before the update, apart from gradients. The update itself does not communicate once it
// has changed anything, since every rank updates everything, so a loss does not interrupt it.
void StepProgress::begin_step(const State& state) {
  position_ = run_.position_of(state);
  stage_ = StepStage::kDone;
  random_before_step_ = random_state(run_.replica.part->device);
  const auto buffers = run_.replica.model().buffers();
  buffers_before_step_.resize(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    auto& kept = buffers_before_step_[i];
    kept.defined() ? void(kept.copy_(buffers[i])) : void(kept = buffers[i].detach().clone());
  }
  in_step_ = true;
}

void StepProgress::abandon_step() {
  if (!in_step_) return;
  const at::NoGradGuard no_grad;
  const auto buffers = run_.replica.model().buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(buffers_before_step_[i]);
  set_random_state(random_before_step_, run_.replica.part->device);
}

}  // namespace phalanx
