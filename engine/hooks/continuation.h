// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "engine/checkpoint/copies.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/run_state.h"
#include "engine/engine.h"
#include "engine/hooks/checkpointed_run.h"
#include "engine/hooks/step_progress.h"

namespace phalanx {

/// Keeps the state with which a run goes on after it has lost ranks or gets new ones (CheckpointedRun::recovery). If
/// Replica::goes_on_from_own_state(), each rank carries its own, and no step is repeated. Otherwise the run goes back
/// to a copy (CheckpointedRun::goes_back()), which is taken at the start, after every faults.copies_every steps and
/// each checkpoint, and at the end of the step after which new ranks take part, or, if too many ranks were lost at
/// once, to the newest checkpoint. Without a recovery, the functions do nothing.
class Continuation {
 public:
  /// `state` is the one of the run's checkpoints, complete when the engine starts. `replicas_differed`: replicas or
  /// their gradients have differed at some time. The arguments must outlive this object.
  Continuation(const CheckpointedRun& run, RunState& state, const bool& replicas_differed)
      : run_(run), state_(state), replicas_differed_(replicas_differed), progress_(run) {}

  /// Adds the hooks that follow the progress of the run. Must be called before anything else adds hooks.
  void follow(Engine& engine);

  /// Returns true if the run is built for other ranks than before, and continues from what they have kept.
  bool rebuilt() const { return run_.recovery != nullptr && run_.recovery->rebuilt; }

  /// Restores what the ranks that are left have of the newest copy. Returns false if it is not complete, on all ranks.
  /// Collective. Throws DataError and CommError.
  bool go_back_to_copy(State& state);

  /// Goes back to a checkpoint, which restores the state, since no copy is complete. Throws Error on all ranks if there
  /// is no checkpoint either. Collective.
  void require(const std::optional<Checkpoint>& checkpoint) const;

  /// Restores what the ranks that are left have carried. Collective. Throws DataError and CommError.
  void go_on(State& state);

  /// Begins to keep the state, which is that of the start of training. Collective.
  void begin(const State& state);

  /// Copies the state after step `step`, if that is due. `saved`: a checkpoint is due as well. `position` is the one
  /// where the copy continues.
  void copy_if_due(std::int64_t step, bool saved, const Position& position);

  /// Prepares the end of this step for ranks that take part from here on: copies what only one rank has. carry() has to
  /// follow. Collective. Throws CommError.
  void prepare_for_newcomers(const State& state);

  /// Puts what this rank can go on with into the recovery, after a peer was lost: its state at the end of its last
  /// complete step, or the copies that have arrived. Does nothing if there is nothing new yet. Waits for no more than
  /// messages that are on their way.
  void carry();

  /// Blocks until the messages of the last copy have arrived on this rank.
  void arrive();

 private:
  void count_repeated(const Checkpoint& checkpoint) const;
  void make_copies();
  void copy(const Position& position);

  const CheckpointedRun& run_;
  RunState& state_;
  const bool& replicas_differed_;
  StepProgress progress_;         // if the run does not go back
  std::optional<Copies> copies_;  // empty if the run has nothing to copy
  bool began_ = false;
};

}  // namespace phalanx
