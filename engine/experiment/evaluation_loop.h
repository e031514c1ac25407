// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "datasets/dataset.h"
#include "engine/config/experiment_config.h"
#include "engine/experiment/evaluation.h"
#include "engine/experiment/trainer.h"
#include "engine/hooks.h"
#include "engine/hooks/checkpointed_run.h"
#include "engine/hooks/early_stop.h"
#include "engine/hooks/report.h"
#include "framework/base/metrics.h"

namespace phalanx {

/// The version of the model that an evaluation measures. If replicas differ during training, each rank evaluates its
/// own; the final model is then another version.
class EvaluatedVersion {
 public:
  /// Begins an evaluation of the split that decides. `equal`: all replicas are equal.
  void begin(bool equal) {
    own_ = !trained_ && !equal;
    ever_own_ |= own_;
  }

  /// Tells that training has ended. From then on, all replicas are equal.
  void end_training() { trained_ = true; }

  bool trained() const { return trained_; }

  /// Returns true if each rank has evaluated its own model in the last evaluation of the split that decides.
  bool own() const { return own_; }

  /// Returns the version in words (MetricsRecord::version), empty if there is only one. `averages`: parameters held
  /// their averages.
  std::string text(bool averages) const;

 private:
  bool trained_ = false, own_ = false, ever_own_ = false;
};

/// The evaluations of a run: measures the model during training and at the end, and passes the metrics to everything
/// that decides by them, which are early stopping, the schedule, and the choice of the best checkpoint. All functions
/// that evaluate are collective.
class EvaluationLoop {
 public:
  /// All arguments must outlive the object. `splits`: see build_trainer().
  EvaluationLoop(const ExperimentConfig& config, const Splits& splits, Trainer& trainer, Report& report);

  /// Evaluates the model after a step of training, on the split that decides. Sets `state.stop` if it no longer
  /// improves.
  void evaluate_while_training(State& state);

  /// Evaluates the final model on the split that decides, unless its last evaluation was of the same model.
  void evaluate_final_model(const State& last);

  /// Measures the model on a split, and reports the metrics.
  Metrics measure(const std::string& split, const State& state, bool shown = true);

  /// Tells that training has ended. From then on, a loss that is not finite is no error until throw_if_diverged().
  void end_training() { version_.end_training(); }

  /// Throws Error if a loss of the final model was not finite.
  void throw_if_diverged() const;

  /// Sets a function that is called if a loss is not finite, before that is an error.
  void on_divergence(std::function<void()> function) { on_divergence_ = std::move(function); }

  /// Returns the split that decides if anything is decided by evaluations; empty otherwise.
  std::string decides() const;

  Evaluation& evaluation() { return evaluation_; }
  EarlyStop& early_stop() { return early_stop_; }

  /// Returns the last evaluation of the split that decides. A run that resumes replaces it.
  LastEvaluation& last() { return last_; }

 private:
  void evaluate(const State& state);

  const ExperimentConfig& config_;
  Trainer& trainer_;
  Report& report_;
  Evaluation evaluation_;
  EarlyStop early_stop_;
  EvaluatedVersion version_;
  LastEvaluation last_;
  std::function<void()> on_divergence_ = [] {};
  std::string diverged_;  // split whose final loss is not finite; empty: none
};

}  // namespace phalanx
