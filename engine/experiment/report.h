// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/build/replica.h"
#include "engine/checkpoint/checkpoint_part.h"
#include "engine/engine.h"
#include "engine/experiment/config.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/measurement_sinks.h"
#include "engine/experiment/run_times.h"
#include "engine/experiment/training_meters.h"
#include "engine/watch/measurement.h"
#include "engine/watch/progress.h"
#include "engine/watch/step_clock.h"
#include "framework/base/metrics.h"
#include "framework/base/named_tensors.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// The output of a run. During training, metrics go to all destinations that the config names. At the end
/// summary.json, report.html and the weights are written. All ranks measure; rank 0 writes.
class Report {
 public:
  /// All arguments must outlive the report. Throws DataError if a file cannot be opened, and ConfigError if metrics
  /// cannot be served.
  Report(const ExperimentConfig& config, const ExperimentContext& context, Progress::Total total, StepClock& clock,
         const Replica& replica);

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

  /// Returns the parts of a checkpoint. When a run resumes, metrics.jsonl is cut back to its length at the checkpoint,
  /// TensorBoard is told which events are obsolete, and times and counts continue, so that they cover the whole run.
  std::vector<CheckpointPart> parts();

  /// Writes the final files. On rank 0 `weights` must be the weights of the whole model.
  void finish(const ExperimentResult& result, const NamedTensors& weights);

 private:
  bool writes_to_console() const { return context_.world->rank() == 0; }
  Communicator& all_ranks() const { return *replica_.mesh().control(); }
  const CommunicatorPtr& readers() const { return replica_.mesh().control(kResultAxes); }

  void count(const State& state);
  void read_meters(const State& state);
  double peak_of_ranks() const;
  void read_epoch(const State& state);
  NamedTensors save() const;
  void load(const NamedTensors& saved);

  const ExperimentConfig& config_;
  const ExperimentContext& context_;
  const Replica& replica_;
  MetricsSinks sinks_;
  TrainingMeters meters_;
  RunTimes times_;
  MetricsRecord latest_;  // the last one of training
};

}  // namespace phalanx
