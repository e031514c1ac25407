// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/build/resolved_settings.h"
#include "engine/checkpoint/checkpoint_part.h"
#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/run_state.h"
#include "engine/engine.h"
#include "engine/hooks/checkpointed_run.h"
#include "engine/hooks/continuation.h"

namespace phalanx {

/// Decides when a run saves checkpoints, and where it resumes.
///
///   after every n-th step     for the last step of an epoch, after the hooks and the test at the end of the epoch
///   after every n-th epoch    after its test
///   after a test              if the best checkpoints are kept
///   at the end                if any of these is asked for; also after early stopping
///   when it is stopped        in any case, after the step at which all ranks stop
///
/// A run that has lost ranks or gets new ones resumes from what its Continuation has kept.
///
/// Values that are not finite are never saved, so that they do not replace good ones. The guard ends the run instead.
class Checkpointing {
 public:
  explicit Checkpointing(const CheckpointedRun& run)
      : run_(run), settings_(describe(run.replica.settings, run.config)) {}
  Checkpointing(const Checkpointing&) = delete;
  Checkpointing& operator=(const Checkpointing&) = delete;

  /// Adds a part to all checkpoints. Must be called before training starts.
  void add(CheckpointPart part) { parts_.push_back(std::move(part)); }

  /// Throws ConfigError if the best checkpoints are chosen by a metric that is not in `measured`, the metrics of
  /// evaluations.
  void check_metric(const Metrics& measured) const;

  /// Adds the hooks. The engine must outlive the object.
  void attach(Engine& engine);

  /// Returns what the run goes on with after it has lost ranks or gets new ones.
  Continuation& continuation() { return continuation_; }

  /// Blocks until the checkpoint that is being written is complete.
  void settle() { checkpointer_->settle(); }

  /// Returns why a stopped run could not be saved, the same on all ranks. Empty if the run was saved or was not
  /// stopped. Call it after training.
  std::string why_unsaved() const;

  /// Throws why_unsaved() as a DataError, unless it is empty.
  void check() const;

  std::int64_t failed() const { return checkpointer_->failed(); }

 private:
  void start(const std::vector<Slice>& slices, State& state);
  void resume_from(const Checkpoint& checkpoint, State& state);
  void update(const State& state);
  void end_epoch(State& state);
  void end();
  void save(const Position& position);
  void check_numbers();
  void show_notice();
  bool regular() const;
  bool updates_with_own_gradients() const;
  bool due_at_step(std::int64_t step) const;
  bool due_by_test(std::int64_t step) const;
  Communicator& world() const { return run_.world(); }

  CheckpointedRun run_;
  std::string settings_;  // description of the run's ResolvedSettings
  std::string config_text_;
  std::vector<CheckpointPart> parts_;
  RunState state_;
  std::optional<Checkpointer> checkpointer_;
  bool same_setup_ = false;  // same ranks, strategy and buckets as the run that it resumes
  // Replicas or their gradients have differed at some time. Since then the optimizer state may differ between ranks.
  bool replicas_differed_ = false;
  Continuation continuation_{run_, state_, replicas_differed_};
};

}  // namespace phalanx
