// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/metrics.h"
#include "framework/observe/times/step_times.h"

namespace phalanx {

/// The cost of failures of a job so far.
struct FailureCost {
  std::int64_t ranks = 0;     // that it has lost and gone on without
  double seconds = 0;         // of these losses and of restarts
  double goodput = 1;         // the share of the time since its start that they have not cost
  std::int64_t returned = 0;  // ranks that have taken the places of lost ones
};

/// The metrics of some steps of training, or of a test, over all ranks.
struct MetricsRecord {
  std::int64_t step = 0;   // number of completed updates
  std::int64_t epoch = 0;  // counted from 0
  std::string split;       // "train", "validation" or "test"
  Metrics metrics;         // "loss" first
  double samples_per_second = 0;
  double seconds = 0;                     // since the start of training
  std::optional<double> learning_rate{};  // only of training: rate of the last step
  std::optional<StepTimes> times{};       // only of training
  std::optional<FailureCost> failures{};  // only of training
  std::int64_t planned_steps = 0;         // updates of the whole run, which may change; 0: not known
  std::string version{};                  // version of the model, if more than one is tested: "final model"
};

/// Receives records of metrics, on rank 0 and in one thread. add() throws DataError if it cannot write now, and the
/// next call tries again; so does retry(), without a new record.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual void add(const MetricsRecord& record) = 0;
  virtual void retry() {}
};

}  // namespace phalanx
