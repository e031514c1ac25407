// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/run_times.h"

namespace phalanx {

void RunTimes::start_training() { training_start_ = window_.start = Clock::now(); }

void RunTimes::count_step(std::int64_t samples) {
  if (seconds_to_first_step_ == 0) seconds_to_first_step_ = since_job_started();
  window_.samples += samples;
  samples_ += samples;
}

void RunTimes::end_training(Communicator& ranks) {
  training_seconds_ = since_training_started();
  clock_.synchronize();
  step_times_ = across_ranks(clock_.total(), ranks);
}

void RunTimes::start_evaluation() {
  clock_.lap(Phase::kHooks);  // hooks of the step that the evaluation interrupts
  evaluation_start_ = Clock::now();
}

double RunTimes::end_evaluation() {
  const double seconds = seconds_since(evaluation_start_);
  if (training_seconds_ == 0) evaluation_seconds_ += seconds;  // an evaluation after the end is not part of training
  // Samples that were trained on before the evaluation stay in the window, and so must their time.
  window_.start += Clock::now() - evaluation_start_;
  clock_.skip();
  return seconds;
}

double RunTimes::window_samples_per_second() const {
  return static_cast<double>(window_.samples) / seconds_since(window_.start);
}

PhaseTimes RunTimes::window_phases() {
  if (const PhaseTimes phases = clock_.total() - window_.phases; phases.steps > 0) last_phases_ = phases;
  return last_phases_;
}

void RunTimes::begin_window() { window_ = {.start = Clock::now(), .samples = 0, .phases = clock_.total()}; }

double RunTimes::samples_per_second() const {
  const double training = training_seconds_ - evaluation_seconds_;
  return training > 0 ? static_cast<double>(samples_) / training : 0;
}

RunTimes::Progress RunTimes::progress() const {
  return {.window_samples = window_.samples,
          .samples = samples_,
          .training_seconds = since_training_started(),
          .window_seconds = seconds_since(window_.start),
          .evaluation_seconds = evaluation_seconds_};
}

void RunTimes::load(const Progress& progress) {
  const auto before = [now = Clock::now()](double seconds) {
    return now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  window_.samples = progress.window_samples;
  samples_ = progress.samples;
  training_start_ = before(progress.training_seconds);
  window_.start = before(progress.window_seconds);
  evaluation_seconds_ = progress.evaluation_seconds;
}

}  // namespace phalanx
