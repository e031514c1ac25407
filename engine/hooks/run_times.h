// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "framework/comm/communicator.h"
#include "framework/observe/times/step_clock.h"
#include "framework/observe/times/step_times.h"

namespace phalanx {

/// The times of a run on one rank, and the numbers of samples that it has trained on. A window is the time since
/// metrics were last read. Evaluations are part of neither windows nor the time of training. All times are in seconds.
class RunTimes {
 public:
  using Clock = std::chrono::steady_clock;

  /// `started`: when the user started the job. The clock must outlive the object.
  RunTimes(StepClock& clock, Clock::time_point started) : clock_(clock), started_(started) {}

  void start_training();
  void count_step(std::int64_t samples);

  /// Ends training. Collective.
  void end_training(Communicator& ranks);

  void start_evaluation();
  double end_evaluation();  // returns its seconds

  double since_job_started() const { return seconds_since(started_); }
  double since_training_started() const { return seconds_since(training_start_); }

  std::int64_t window_samples() const { return window_.samples; }
  double window_samples_per_second() const;

  /// Returns the times of the steps of the window, or of the last window in which the clock has measured steps: on a
  /// device it does not measure every one.
  PhaseTimes window_phases();
  void begin_window();

  /// Return the results, after end_training(). Samples per second exclude evaluations. `step_times` are the times of
  /// all steps that this process has taken, on all ranks.
  double training_seconds() const { return training_seconds_; }
  double seconds_to_first_step() const { return seconds_to_first_step_; }
  double samples_per_second() const;
  const StepTimes& step_times() const { return step_times_; }

  /// The state that a checkpoint saves, so that times and counts of a resumed run cover the whole run.
  struct Progress {
    std::int64_t window_samples = 0, samples = 0;
    double training_seconds = 0, window_seconds = 0, evaluation_seconds = 0;
  };
  Progress progress() const;
  void load(const Progress& progress);

 private:
  struct Window {
    Clock::time_point start{};
    std::int64_t samples = 0;
    PhaseTimes phases{};  // total of the clock when the window began
  };

  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  StepClock& clock_;
  Clock::time_point started_, training_start_{}, evaluation_start_{};
  Window window_;
  PhaseTimes last_phases_;
  std::int64_t samples_ = 0;
  double seconds_to_first_step_ = 0, evaluation_seconds_ = 0, training_seconds_ = 0;
  StepTimes step_times_;
};

}  // namespace phalanx
