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

/// Output of a run: readings while it trains, to all the places that the config names; at the end summary.json,
/// report.html and the weights. All ranks measure, rank 0 writes.
class Report {
 public:
  /// All must outlive it. Throws DataError, and ConfigError where metrics cannot be served.
  Report(const ExperimentConfig& config, const ExperimentContext& context, Progress::Total total, StepClock& clock,
         const ParameterUpdate& update);

  /// The model and its data, as they are shown before the first step.
  struct Start {
    std::int64_t training_samples = 0, validation_samples = 0, test_samples = 0, parameters = 0;
    std::string strategy;
    bool selected = false;  // where the config leaves the choice of the strategy to us
  };
  void tell_start(const Start& start);

  void attach(Engine& engine, const Mesh& mesh);  // which must outlive it

  /// An evaluation: of a split, which has so many samples, and of a version of the model (see Measurement).
  struct Evaluated {
    std::string split;
    std::int64_t samples = 0;
    std::string version{};
    bool shown = true;  // as progress; the rest is told in any case
  };
  void start_evaluation();
  void end_evaluation(const State& state, const Evaluated& evaluated, const Readings& readings);

  /// The last readings of the training meters, over all ranks.
  const Readings& last_training() const { return latest_.readings; }

  /// For checkpoints: going on, metrics.jsonl is cut back to where it was, TensorBoard told what no longer counts, and
  /// times and counts are of the whole run.
  std::vector<CheckpointPart> parts();

  /// Writes what remains; on rank 0 `weights` are those of the whole model.
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
  TensorBoard* board_ = nullptr;  // one of them, if any
  std::unique_ptr<Progress> progress_;
  const Mesh* mesh_ = nullptr;      // since attach()
  MeterSet meters_, epoch_meters_;  // since the last reading, since the epoch began
  std::int64_t steps_per_epoch_;
  bool epoch_has_steps_ = false;  // that this process has taken
  at::Tensor meters_config_;      // as text
  Measurement latest_;            // of training

  Clock::time_point train_start_, evaluation_start_, window_start_;
  std::int64_t window_samples_ = 0, samples_ = 0;
  double seconds_to_first_step_ = 0, evaluation_seconds_ = 0, train_seconds_ = 0;
  PhaseTimes window_times_;  // on the clock when the window began
  StepTimes times_;          // of all steps that this process has taken
};

}  // namespace phalanx
