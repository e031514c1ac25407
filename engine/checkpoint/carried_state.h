// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/copies.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/run_state.h"
#include "engine/strategies/strategy_extensions.h"
#include "framework/base/error.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The part of a step's hooks (Event::kUpdate) that a rank has completed.
enum class StepStage {
  kUpdated,    // none: the parameters have changed
  kEvaluated,  // all up to the evaluation of the model
  kDone,       // all
};

/// A checkpoint of one rank in memory: its whole replica with all that belongs to it, as it was at the end of a step.
/// With it, the rank goes on among the ranks that are left after a loss.
struct CarriedState {
  Manifest manifest{};  // position, optimizer updates, and the last evaluation; other fields are empty
  StepStage stage = StepStage::kDone;
  Snapshot snapshot{};
  std::string parts{};  // the file of state without the optimizer's, for ranks that have the optimizer's already
  LeftCentre centre{};  // of a strategy that keeps_centre
};

/// Copies the state of this rank. Every parameter, and all state of the optimizer, must be whole on it. `manifest` has
/// the fields named above. Not collective.
CarriedState carry(const RunState& state, Manifest manifest, StepStage stage);

/// Returns the state of a rank that has not taken part in the run yet.
CarriedState nothing_carried();

/// Restores `state` on the ranks that are left, from what they have carried, and returns the position that all of them
/// have then. Collective. Throws DataError and CommError.
///
/// Ranks may have been interrupted at different points: some have completed an update for which others still wait. A
/// rank that has completed it has the gradients of all ranks, including the lost one, so the update is valid, and all
/// ranks take over the replica of the first rank that has come furthest. This loses nothing, since all replicas and
/// optimizers are equal at the end of a step, and a rank that has not come as far has changed only what belongs to it
/// alone: random numbers, buffers and meters, which it carries as they were at the end of its last complete step. If no
/// rank has completed the update, all begin the step again.
///
/// Ranks with nothing_carried() take over that replica as well, and otherwise begin like the additional ranks of a run
/// that resumes on more ranks. They must come after all others in `world`. Throws Error if no rank has carried a state.
struct CarriedPosition {
  Manifest manifest;
  StepStage stage;
};
CarriedPosition restore_carried(const CarriedState& own, RunState& state, Communicator& world);

/// Does the same for a strategy that keeps_centre: each rank goes on with its own replica, and all of them with the
/// newest centre that a rank has left on parameter servers, and with the position of the first rank that has come
/// furthest. Throws CommError of kind kPeerLost also if the servers that had the centre are lost.
CarriedPosition restore_replicas(const CarriedState& own, RunState& state, Communicator& world);

/// A rank that the run has lost.
struct LostRank {
  int rank = 0;           // its number when the run began
  std::string reason{};   // one line
  std::int64_t step = 0;  // the step after which the run went on without it; -1: it has not gone on yet
  double seconds = 0;     // from the time at which its loss was noticed until training went on
};

/// A rank that takes the place of a lost one, or has joined in addition.
struct ReturnedRank {
  int rank = 0;            // its own number
  int in_place_of = 0;     // the number of the lost rank; -1: it has joined in addition
  int source = 0;          // the number of the rank whose state it got; -1: each rank had a part of it
  std::int64_t step = -1;  // the step after which it has taken part; -1: it does not yet
  double seconds = 0;      // from the loss, or from the decision to start it, until it took part

  std::chrono::system_clock::time_point lost_at{};  // a time that all hosts know
};

/// The end of a call of run_experiment() with a whole state in Recovery::carried, because ranks wait to take part.
class NewcomersWait : public Error {
 public:
  NewcomersWait() : Error("the run is interrupted for ranks that wait to take part in it") {}
};

/// The memory of a rank that goes on without lost ranks (faults.on_lost_rank: shrink or replace). It lives as long as
/// the rank; the parts of a run read and fill it. Belongs to the rank's thread.
struct Recovery {
  std::optional<CarriedState> carried{};  // if Replica::goes_on_from_own_state()
  KeptCopies copies{};                    // otherwise
  bool serves = false;                    // this rank is a parameter server, which goes on if the others do

  /// Returns false if training has not begun, so that there is nothing to go on with.
  bool can_go_on() const { return serves || carried || !copies.empty(); }

  /// The time at which the loss was noticed for which the run is interrupted now.
  std::optional<std::chrono::steady_clock::time_point> noticed{};

  /// Counts the time of training before `noticed` that is repeated after this loss. If the run goes back several times
  /// before training goes on, the longest time counts.
  void add_repeated(double seconds) { repeated_seconds = std::max(repeated_seconds, seconds); }

  /// The time at which this rank began. It can repeat no training from before that.
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

  double repeated_seconds = 0;   // see add_repeated(); 0 when training goes on
  int ranks = 0;                 // with which the run began; 0: it is not built yet
  bool rebuilt = false;          // the run is built for the ranks that are left, and continues from this memory
  std::vector<LostRank> lost{};  // so far
  std::vector<ReturnedRank> returned{};
  double lost_seconds = 0;  // the sum of the times that the losses have cost
};

}  // namespace phalanx
