// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/evaluation_loop.h"

namespace phalanx {

std::string EvaluatedVersion::text(bool averages) const {
  const std::string average = averages ? "moving average" : "";
  const std::string noun = averages ? average : "model";
  if (own_) return "each rank's own " + noun;
  return trained_ && ever_own_ ? "final " + noun : average;
}

EvaluationLoop::EvaluationLoop(const ExperimentConfig& config, const Splits& splits, Trainer& trainer, Report& report)
    : config_(config),
      trainer_(trainer),
      report_(report),
      evaluation_(config, splits, trainer.preparation, trainer.replica.step->step(), trainer.replica.mesh()),
      early_stop_(config.train.early_stop) {}

void EvaluationLoop::evaluate_while_training(State& state) {
  evaluate(state);
  early_stop_.observe(state.step, last_.metrics);
  state.stop |= early_stop_.stopped();
}

void EvaluationLoop::evaluate_final_model(const State& last) {
  if (last_.step != last.step || version_.own()) evaluate(last);
}

void EvaluationLoop::evaluate(const State& state) {
  version_.begin(trainer_.replica.strategy().replicas_equal());
  // After the last step, the final model is evaluated as well.
  const bool shown = !version_.own() || state.step < trainer_.length.steps;
  last_ = {measure(evaluation_.watched(), state, shown), state.step};
  const auto scheduled = trainer_.length.configured_step(state.epoch, state.cursor);
  trainer_.learning_rate->schedule().observe(scheduled, last_.metrics);
}

Metrics EvaluationLoop::measure(const std::string& split, const State& state, bool shown) {
  report_.start_evaluation();
  trainer_.embeddings->settle();
  Metrics metrics;
  trainer_.replica.as_evaluated([&] { metrics = evaluation_.run(split, state); });
  if (evaluation_.diverged()) {
    on_divergence_();
    if (!version_.trained()) throw_diverged(split);
    if (diverged_.empty()) diverged_ = split;  // thrown after the weights were written
  }
  const auto version = version_.text(config_.train.ema_decay > 0);
  report_.end_evaluation(state, {split, evaluation_.samples(split), version, shown}, metrics);
  return metrics;
}

void EvaluationLoop::throw_if_diverged() const {
  if (!diverged_.empty()) throw_diverged(diverged_);
}

std::string EvaluationLoop::decides() const {
  const bool decided = early_stop_.enabled() || config_.checkpoint.keep_best > 0 ||
                       !trainer_.learning_rate->schedule().monitored_metrics().empty();
  return decided ? evaluation_.watched() : "";
}

}  // namespace phalanx
