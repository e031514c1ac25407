// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/run_state.h"
#include "engine/engine.h"
#include "engine/experiment/config.h"
#include "engine/watch/nan_guard.h"
#include "engine/watch/run_folder.h"
#include "engine/watch/stop_vote.h"

namespace phalanx {

/// The last evaluation of a run, of the split that versions of the model are compared by.
struct LastEvaluation {
  Readings readings{};
  std::int64_t step = -1;  // -1: there was none
};

/// When a run saves itself, and where it goes on.
///
///   after every n-th step     before what the end of an epoch brings; if the step is an epoch's last: after it
///   after every n-th epoch    after its test
///   after a test              where the best ones are kept
///   at the end                where any of these is asked for; also at an early one
///   when it is stopped        in any case, after the step that all ranks stop at
///
/// Values that are not finite are never saved, so that they do not replace good ones: the guard ends the run instead.
class Checkpointing {
 public:
  /// The parts of a run that this class reads. They must outlive it.
  struct Run {
    const ExperimentConfig& config;
    const RunFolder& folder;
    CommunicatorPtr world;
    const Mesh& mesh;
    c10::Device device;  // where the rank computes
    Engine& engine;
    const FlatParameters& parameters;
    const Placements& placements;
    std::set<std::string> elsewhere;  // see RunState
    Model& model;
    Optimizer& optimizer;
    Schedule& schedule;
    Synchronizer& synchronizer;
    const Loader& loader;
    const StopVote& vote;
    NanGuard& nan_guard;
    LastEvaluation& last_evaluation;
    std::function<NamedTensors()> shared_buffers;  // the model's, as it is tested; collective
    std::int64_t samples;                          // in the training split
    std::string fitted;                            // Splits::fitted
    std::int64_t steps;                            // of the whole run
    std::string agreement;                         // by what replicas agree
  };

  explicit Checkpointing(const Run& run) : run_(run) {}

  /// Something more to save; before attach().
  void add(CheckpointPart part) { parts_.push_back(std::move(part)); }

  /// Throws ConfigError where the best checkpoints are to be kept by a metric that evaluations do not read.
  void check_metric(const Readings& measured) const;

  /// After all other hooks.
  void attach();

  /// Blocks until the checkpoint that is being written is complete.
  void settle() { checkpointer_->settle(); }

  /// Returns why a run that was stopped could not be saved, the same on all ranks; empty: it was saved, or not stopped.
  /// After training.
  std::string why_unsaved() const;

  /// Throws it as a DataError, unless it is empty.
  void check() const;

  std::int64_t failed() const { return checkpointer_->failed(); }

 private:
  void start(State& state);
  void go_on(const Checkpoint& checkpoint, State& state);
  void update(const State& state);
  void end_epoch(State& state);
  void end();
  void save(const Position& position);
  void tell_failures();
  void tell_other_kernels(const Manifest& manifest) const;
  bool regular() const;
  bool updates_with_own_gradients() const;
  bool due_at_step(std::int64_t step) const;
  bool due_by_test(std::int64_t step) const;
  RunState run_state();
  Manifest::Words identity() const;

  Run run_;
  std::string config_text_;
  std::vector<CheckpointPart> parts_;
  RunState state_;
  std::optional<Checkpointer> checkpointer_;
  std::int64_t told_ = 0;       // failures that the user has seen
  bool goes_on_alike_ = false;  // as many ranks, strategy and buckets as the run that it goes on from
  bool were_apart_ = false;  // replicas or their gradients have differed: the state of optimizers may differ since then
};

}  // namespace phalanx
