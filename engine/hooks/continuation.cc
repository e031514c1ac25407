// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/continuation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/checkpoint/carried_state.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/comm/mesh/broken_replicas.h"
#include "models/model.h"

namespace phalanx {

void Continuation::follow(Engine& engine) {
  if (run_.recovery != nullptr && !run_.goes_back()) progress_.follow(engine);
}

bool Continuation::go_back_to_copy(State& state) {
  Recovery& recovery = *run_.recovery;
  const Copy* const copy = restore_copy(recovery.copies, state_, run_.world());
  if (copy == nullptr) return false;
  const Manifest& manifest = copy->manifest;
  run_.set_position(manifest, manifest.position.within_epoch() && manifest.tested_at != manifest.position.step, state);
  if (recovery.noticed) {
    const std::chrono::duration<double> repeated = *recovery.noticed - copy->taken;
    recovery.add_repeated(repeated.count());
  }
  if (run_.world().rank() == 0) CheckpointFolder(run_.folder.checkpoints()).set_aside_after(state.step);
  log_info() << "goes back to the copy of step " << state.step << " on ranks: " << run_.world().size();
  return true;
}

void Continuation::require(const std::optional<Checkpoint>& checkpoint) const {
  if (checkpoint) {
    log_warning() << "copies in memory were lost with the ranks that had them, so the run goes back to a checkpoint";
    count_repeated(*checkpoint);
    return;
  }
  run_.world().barrier().wait();  // so that no rank takes the end of another one for the cause
  throw Error(
      "ranks were lost together with the copies of their state, which their neighbours had in memory "
      "(faults.copies_every), and there is no checkpoint to go back to; set checkpoint.every_steps");
}

// Counts the time since a checkpoint was written. An earlier run may have written it.
void Continuation::count_repeated(const Checkpoint& checkpoint) const {
  using Duration = std::chrono::duration<double>;
  Recovery& recovery = *run_.recovery;
  if (!recovery.noticed) return;
  const Duration trained = *recovery.noticed - recovery.began;
  const Duration since_noticed = std::chrono::steady_clock::now() - *recovery.noticed;
  const auto age = age_of(checkpoint);
  recovery.add_repeated(age ? std::min(*age - since_noticed.count(), trained.count()) : trained.count());
}

void Continuation::go_on(State& state) {
  const CarriedState& own = run_.recovery->carried.value();
  Communicator& world = run_.world();
  auto* const keeps = run_.replica.strategy().extensions().keeps_centre;
  const CarriedPosition carried =
      keeps != nullptr ? restore_replicas(own, state_, world) : restore_carried(own, state_, world);
  if (keeps != nullptr) keeps->succeed(own.centre.remove);
  progress_.set_stage(carried.stage);
  if (carried.stage == StepStage::kUpdated) state.unfinished = HookPhase::kEvaluate;
  if (carried.stage == StepStage::kEvaluated) state.unfinished = HookPhase::kAdapt;
  run_.set_position(carried.manifest, carried.manifest.position.within_epoch(), state);
  log_info() << "goes on after step " << state.step << " on ranks: " << world.size();
}

// From the first step on, there is a copy to go back to, unless the only replica would be lost with any rank.
void Continuation::begin(const State& state) {
  progress_.set_position(run_.position_of(state));
  began_ = true;
  if (!run_.goes_back()) return;
  run_.recovery->carried.reset();  // of a rank that had nothing until now
  if (run_.replica.mesh().shape()[Axis::kData] == 1) return run_.recovery->copies.clear();
  make_copies();
  copy(run_.position_of(state));
  copies_->arrive();
  run_.world().barrier().wait();
}

// A copy follows each checkpoint, so that the run does not go back further once the copy has arrived.
void Continuation::copy_if_due(std::int64_t step, bool saved, const Position& position) {
  const auto every = run_.config.faults.copies_every;
  if (copies_ && every > 0 && (saved || step % every == 0)) copy(position);
}

void Continuation::prepare_for_newcomers(const State& state) {
  if (!run_.goes_back()) return;
  if (!copies_) make_copies();
  copy(run_.position_of(state));
  copies_->arrive();
}

void Continuation::carry() {
  if (run_.recovery == nullptr || !began_) return;
  if (run_.goes_back()) {
    if (copies_) copies_->keep_what_arrives();
    return;
  }
  progress_.abandon_step();
  state_.buffers = run_.replica.model().named_buffers();
  LeftCentre centre;
  if (auto* const keeps = run_.replica.strategy().extensions().keeps_centre) centre = keeps->leave();
  run_.recovery->carried = phalanx::carry(state_, run_.manifest_at(progress_.position()), progress_.stage());
  run_.recovery->carried->centre = std::move(centre);
}

void Continuation::arrive() {
  if (copies_) copies_->arrive();
}

void Continuation::make_copies() {
  copies_.emplace(run_.replica.mesh().control(), state_, run_.recovery->copies,
                  static_cast<int>(ranks_per_replica(run_.replica.mesh().shape())));
}

void Continuation::copy(const Position& position) {
  state_.buffers = run_.replica.shared_buffers();
  copies_->take(run_.manifest_at(position), !replicas_differed_);
}

}  // namespace phalanx
