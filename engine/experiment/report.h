// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/engine.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/parameter_update.h"
#include "engine/meters/meter_set.h"
#include "engine/watch/best_effort.h"
#include "engine/watch/measurement.h"
#include "engine/watch/progress.h"
#include "engine/watch/step_clock.h"
#include "engine/watch/tensorboard.h"
#include "framework/base/named_tensors.h"
#include "framework/comm/mesh.h"

namespace phalanx {

/// The output of a run. While it trains, readings go to all destinations that the config names. At the end
/// summary.json, report.html and the weights are written. All ranks measure; rank 0 writes.
class Report {
 public:
  /// All arguments must outlive the report. Throws DataError if a file cannot be opened, and ConfigError if metrics
  /// cannot be served.
  Report(const ExperimentConfig& config, const ExperimentContext& context, Progress::Total total, StepClock& clock,
         const ParameterUpdate& update);

  /// Facts about the model and its data that are shown before the first step.
  struct Start {
    std::int64_t training_samples = 0, validation_samples = 0, test_samples = 0, parameters = 0;
    std::string strategy;
    bool selected = false;  // the config has strategy: auto
  };
  void tell_start(const Start& start);

  void attach(Engine& engine, const Mesh& mesh);  // `mesh` must outlive the report

  /// Facts about an evaluation: the split, its number of samples, and the version of the model (see Measurement).
  struct Evaluated {
    std::string split;
    std::int64_t samples = 0;
    std::string version{};
    bool shown = true;  // on the console; all other destinations get it in any case
  };
  void start_evaluation();
  void end_evaluation(const State& state, const Evaluated& evaluated, const Readings& readings);

  /// Returns the last readings of the training meters, over all ranks.
  const Readings& last_training() const { return latest_.readings; }

  /// Returns the parts of a checkpoint. When a run resumes, metrics.jsonl is cut back to its length at the checkpoint,
  /// TensorBoard is told which events are obsolete, and times and counts continue, so that they cover the whole run.
  std::vector<CheckpointPart> parts();

  /// Writes the final files. On rank 0 `weights` must be the weights of the whole model.
  void finish(const ExperimentResult& result, const NamedTensors& weights);

 private:
  using Clock = std::chrono::steady_clock;

  void start();
  void count(const State& state);
  void read_meters(const State& state);
  double peak_of_ranks(Communicator& ranks) const;
  void read_epoch(const State& state);
  void add(const Measurement& measurement);
  CheckpointPart meters_part(const std::string& name, MeterSet& meters) const;
  NamedTensors save() const;
  void load(const NamedTensors& saved);
  double seconds_since(Clock::time_point start) const;
  std::string summary(const ExperimentResult& result) const;
  nlohmann::ordered_json matrix_products(double operations_per_sample, double samples_per_second) const;

  const ExperimentConfig& config_;
  const ExperimentContext& context_;
  const bool speaks_;  // rank 0
  StepClock& clock_;
  const ParameterUpdate& update_;
  struct Sink {
    std::unique_ptr<MeasurementSink> sink;
    BestEffort effort{};
  };
  std::vector<Sink> sinks_;
  TensorBoard* board_ = nullptr;  // owned by sinks_; null: none
  std::unique_ptr<Progress> progress_;
  const Mesh* mesh_ = nullptr;      // null before attach()
  MeterSet meters_, epoch_meters_;  // one since the last reading, the other since the epoch began
  std::int64_t steps_per_epoch_;
  bool epoch_has_steps_ = false;  // this process has taken a step of the epoch
  at::Tensor meters_config_;      // the section watch.meters, as text
  Measurement latest_;            // the last one of training

  Clock::time_point train_start_, evaluation_start_, window_start_;
  std::int64_t window_samples_ = 0, samples_ = 0;
  double seconds_to_first_step_ = 0, evaluation_seconds_ = 0, train_seconds_ = 0;
  PhaseTimes window_times_;  // total of the clock when the window began
  StepTimes times_;          // of all steps that this process has taken
};

}  // namespace phalanx
