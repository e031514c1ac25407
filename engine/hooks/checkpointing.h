// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "datasets/continued_loader.h"
#include "engine/build/replica.h"
#include "engine/build/resolved_settings.h"
#include "engine/checkpoint/carried_state.h"
#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/copies.h"
#include "engine/checkpoint/run_state.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "engine/hooks/stop_vote.h"
#include "engine/hooks/watching/nan_guard.h"
#include "engine/run_folder.h"
#include "engine/run_length.h"
#include "engine/schedule/schedule.h"

namespace phalanx {

/// The last evaluation of a run on the split by which versions of the model are compared.
struct LastEvaluation {
  Metrics metrics{};
  std::int64_t step = -1;  // -1: there was none
};

/// Decides when a run saves checkpoints, and where it resumes.
///
///   after every n-th step     for the last step of an epoch, after the hooks and the test at the end of the epoch
///   after every n-th epoch    after its test
///   after a test              if the best checkpoints are kept
///   at the end                if any of these is asked for; also after early stopping
///   when it is stopped        in any case, after the step at which all ranks stop
///
/// Also decides what a run goes on with that has lost ranks or gets new ones (Run::recovery). If
/// Replica::goes_on_from_own_state(), each rank carries that, and no step is repeated. Otherwise the run goes back to a
/// copy, which is taken at the start, after every faults.copies_every steps and each checkpoint, and at the end of the
/// step after which new ranks take part, or, if too many ranks were lost at once, to the newest checkpoint.
///
/// Values that are not finite are never saved, so that they do not replace good ones. The guard ends the run instead.
class Checkpointing {
 public:
  /// The parts of a run that this class reads. They must outlive it.
  struct Run {
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
  };

  explicit Checkpointing(const Run& run) : run_(run), settings_(describe(run.replica.settings, run.config)) {}

  /// Adds a part to all checkpoints. Must be called before training starts.
  void add(CheckpointPart part) { parts_.push_back(std::move(part)); }

  /// Throws ConfigError if the best checkpoints are chosen by a metric that is not in `measured`, the metrics of
  /// evaluations.
  void check_metric(const Metrics& measured) const;

  /// Adds the hooks. The engine must outlive the object.
  void attach(Engine& engine);

  /// Adds the hooks that follow the progress of the run, if it goes on without lost ranks (Run::recovery). Must be
  /// called before anything else adds hooks.
  void follow(Engine& engine);

  /// Puts what this rank can go on with into Run::recovery, after a peer was lost: its state at the end of its last
  /// complete step, or the copies that have arrived. Does nothing if the run does not go on, or has nothing new yet.
  /// Waits for no more than messages that are on their way.
  void carry_state();

  /// Prepares the end of this step for ranks that take part from here on: completes the checkpoint that is being
  /// written, which nobody would complete otherwise, and copies what only one rank has. carry_state() has to follow.
  /// Collective. Throws CommError.
  void prepare_for_newcomers(const State& state);

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
  void go_on(State& state);
  bool go_back_to_copy(State& state);
  void require(const std::optional<Checkpoint>& checkpoint) const;
  void count_repeated(const Checkpoint& checkpoint) const;
  void begin_copies(const State& state);
  void make_copies();
  void copy(const Position& position);
  Position position_of(const State& state) const;
  void set_position(const Manifest& manifest, bool end_to_come, State& state);
  void begin_step(const State& state);
  void update(const State& state);
  void end_epoch(State& state);
  void end();
  void save(const Position& position);
  void check_numbers();
  void show_notice();
  void warn_of_other_kernels(const Manifest& manifest) const;
  bool regular() const;
  bool updates_with_own_gradients() const;
  bool goes_back() const;
  bool copy_due(std::int64_t step, bool saved) const;
  bool due_at_step(std::int64_t step) const;
  bool due_by_test(std::int64_t step) const;
  RunState run_state(const std::vector<Slice>& slices);
  Communicator& world() const { return *run_.replica.mesh().control(); }
  Manifest::Strings identity() const;
  Manifest manifest_at(const Position& position) const;

  Run run_;
  std::string settings_;  // description of the run's ResolvedSettings
  std::string config_text_;
  std::vector<CheckpointPart> parts_;
  RunState state_;
  std::optional<Checkpointer> checkpointer_;
  std::optional<Copies> copies_;  // empty if the run has nothing to copy
  bool same_setup_ = false;       // same ranks, strategy and buckets as the run that it resumes
  // Replicas or their gradients have differed at some time. Since then the optimizer state may differ between ranks.
  bool replicas_differed_ = false;

  bool started_ = false;  // the state is restored

  // For a run that goes on without lost ranks, and from its own state.
  Position position_{};  // after the last complete step
  StepStage stage_ = StepStage::kDone;
  bool in_step_ = false;  // the next step has begun, and has not changed the parameters yet
  std::vector<at::Tensor> buffers_before_step_{};
  at::Tensor random_before_step_{};
};

}  // namespace phalanx
