// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "datasets/continued_loader.h"
#include "engine/build/replica.h"
#include "engine/checkpoint/carried_state.h"
#include "engine/checkpoint/manifest.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "engine/hooks/stop_vote.h"
#include "engine/hooks/watching/nan_guard.h"
#include "engine/run_folder.h"
#include "engine/run_length.h"
#include "engine/schedule/schedule.h"
#include "framework/base/metrics.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The last evaluation of a run on the split by which versions of the model are compared.
struct LastEvaluation {
  Metrics metrics{};
  std::int64_t step = -1;  // -1: there was none
};

/// The parts of a run that checkpoints and copies of its state are about, and its place in its training. What the
/// references name must outlive this object.
struct CheckpointedRun {
  const ExperimentConfig& config;
  const RunFolder& folder;
  const Replica& replica;
  Schedule& schedule;
  NanGuard& nan_guard;
  const StopVote& vote;
  LastEvaluation& last_evaluation;
  RunLength& length;
  ContinuedLoader& loader;       // of training
  std::string fitted;            // Splits::fitted
  Recovery* recovery = nullptr;  // null: a lost rank ends the run

  /// Returns all ranks of the run.
  Communicator& world() const { return *replica.mesh().control(); }

  /// Returns true if the run goes on without lost ranks, and has to go back to a copy for that.
  bool goes_back() const;

  /// Describes what has to be the same in a run that resumes from a checkpoint of this one.
  Manifest::Strings identity() const;

  /// Returns the position of the engine.
  Position position_of(const State& state) const;

  /// Returns what a position and the numbers that belong to it need in a manifest.
  Manifest manifest_at(const Position& position) const;

  /// Puts the run at the position of a checkpoint or copy. `end_to_come`: the hooks of the end of its epoch have not
  /// run yet.
  void set_position(const Manifest& manifest, bool end_to_come, State& state) const;
};

}  // namespace phalanx
