#pragma once

#include <chrono>
#include <memory>

#include "engine/checkpoint/part.h"
#include "engine/engine.h"
#include "engine/experiment/experiment.h"
#include "engine/meters/meter_set.h"
#include "engine/watch/metrics_log.h"
#include "engine/watch/progress.h"

namespace phalanx {

/// What a run tells: metrics.jsonl, summary.json, weights and the progress on the terminal. All ranks measure, rank 0
/// writes.
class Report {
 public:
  Report(const ExperimentConfig& config, const ExperimentContext& context, Progress::Total total);

  void attach(Engine& engine, Communicator& group);

  void start_test();
  void end_test(const State& state, const Readings& readings);

  /// For checkpoints: going on, metrics.jsonl is cut back to where it was, and times and counts are of the whole run.
  std::vector<Part> parts();

  /// Writes what remains.
  void finish(const ExperimentResult& result);

 private:
  using Clock = std::chrono::steady_clock;

  void start();
  void count(const State& state);
  void read_meters(const State& state, Communicator& group);
  NamedTensors save() const;
  void load(const NamedTensors& saved);
  void load_meters(const SavedRanks& saved);
  double seconds_since(Clock::time_point start) const;
  std::string summary(const ExperimentResult& result) const;

  const ExperimentConfig& config_;
  const ExperimentContext& context_;
  const bool speaks_;  // rank 0
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Progress> progress_;
  MeterSet meters_;
  at::Tensor meters_config_;  // as text
  Measurement latest_;        // of training

  Clock::time_point train_start_, test_start_, window_start_;
  std::int64_t window_samples_ = 0, window_begin_ = 0, samples_ = 0;
  double seconds_to_first_step_ = 0, test_seconds_ = 0, train_seconds_ = 0;
};

}  // namespace phalanx
