// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/build/replica.h"
#include "engine/checkpoint/carried_state.h"
#include "engine/checkpoint/checkpoint_part.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "engine/hooks/metrics_sinks.h"
#include "engine/hooks/milestones.h"
#include "engine/hooks/run_times.h"
#include "engine/hooks/training_meters.h"
#include "engine/hooks/watching/gradient_norms.h"
#include "engine/run_folder.h"
#include "engine/run_length.h"
#include "framework/base/metrics.h"
#include "framework/base/named_tensors.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/observe/metrics/metrics_record.h"
#include "framework/observe/times/step_clock.h"

namespace phalanx {

/// The output of a run while it trains: metrics go to all destinations that the config names. All ranks measure;
/// rank 0 writes.
class Report {
 public:
  /// The parts of a run that the report reads. Whatever is passed by reference must outlive it.
  struct Run {
    const ExperimentConfig& config;
    const RunFolder& folder;
    const Replica& replica;
    StepClock& clock;
    const GradientNorms& gradient_norms;
    c10::Device device;                             // where this rank computes
    bool terminal = false;                          // true if standard output is a terminal
    std::chrono::steady_clock::time_point started;  // when the user started the job
    const RunLength& length;
    const Recovery* recovery = nullptr;  // null: a lost rank ends the run
    bool goes_on = false;  // the run goes on from the step in which it lost ranks: metrics.jsonl is not cut back
  };

  /// Throws DataError if a file cannot be opened, and ConfigError if metrics cannot be served.
  explicit Report(const Run& run);

  /// Facts about the model and its data that are shown before the first step.
  struct Start {
    std::int64_t training_samples = 0, validation_samples = 0, test_samples = 0, parameters = 0;
    std::string strategy;
    bool selected = false;  // the config has strategy: auto
  };
  void report_start(const Start& start);

  void attach(Engine& engine);

  /// Facts about an evaluation: the split, its number of samples, and the version of the model (see MetricsRecord).
  struct Evaluated {
    std::string split;
    std::int64_t samples = 0;
    std::string version{};
    bool shown = true;  // on the console; all other destinations get it in any case
  };
  void start_evaluation() { times_.start_evaluation(); }
  void end_evaluation(const State& state, const Evaluated& evaluated, const Metrics& metrics);

  /// Returns the last metrics of the training meters, over all ranks.
  const Metrics& last_training() const { return latest_.metrics; }

  /// Returns the measurements of the run that expectations refer to.
  const Milestones& milestones() const { return milestones_; }

  /// Returns the parts of a checkpoint. When a run resumes, metrics.jsonl is cut back to its length at the checkpoint,
  /// TensorBoard is told which events are obsolete, and times and counts continue, so that they cover the whole run.
  std::vector<CheckpointPart> parts();

  /// Leaves the terminal on a fresh line, and waits until metrics are on disk, at most as long as checkpoint.retry
  /// says. Progress is not shown any more.
  void end_progress();

  const RunTimes& times() const { return times_; }

 private:
  bool writes_to_console() const { return all_ranks().rank() == 0; }
  Communicator& all_ranks() const { return *run_.replica.mesh().control(); }
  bool has_own_results() const;
  const CommunicatorPtr& readers() const { return run_.replica.mesh().control(kResultAxes); }

  void count(const State& state);
  void read_meters(const State& state);
  double peak_of_ranks() const;
  void read_epoch(const State& state);
  NamedTensors save();
  void load(const NamedTensors& saved);

  Run run_;
  MetricsSinks sinks_;
  TrainingMeters meters_;
  RunTimes times_;
  Milestones milestones_;
  MetricsRecord latest_;  // the last one of training
  bool written_ = true;   // all metrics were on disk when the last checkpoint began
};

}  // namespace phalanx
