// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/config/expectation.h"
#include "framework/observe/metrics/metrics_record.h"

namespace phalanx {

/// The measurements of a run that expectations refer to: the last metrics of some epochs, and the times at which
/// metrics have reached a value. They are part of checkpoints, so a run that resumes knows the ones before.
class Milestones {
 public:
  /// `expect` must be complete (with_defaults_of()) and outlive the object.
  explicit Milestones(const ExpectConfig& expect) : expect_(expect) {}

  /// Takes note of a measurement.
  void add(const MetricsRecord& record);

  /// Returns the last value of a metric in an epoch that is named by expect.epochs, such as "3"; nothing if there was
  /// none.
  std::optional<double> in_epoch(const std::string& epoch, const std::string& split, const std::string& metric) const;

  /// The first measurement at which a value was reached.
  struct Reached {
    double seconds = 0;  // since the start of training
    double epochs = 0;   // number of epochs that had begun
  };

  /// Returns when the value was reached; nothing if it never was.
  std::optional<Reached> reached(const ReachConfig& reach) const;

  /// Returns the best value of the metric so far; nothing if it was never measured.
  std::optional<double> best(const ReachConfig& reach) const;

  /// Returns the part of a checkpoint. The object must outlive it.
  CheckpointPart part();

 private:
  void add_epoch(const std::string& epoch, const MetricBounds& bounds, const MetricsRecord& record);
  void add_reach(const ReachConfig& reach, const MetricsRecord& record);
  std::optional<double> value(const std::string& key) const;

  const ExpectConfig& expect_;
  std::map<std::string, double> values_;  // by keys that name what they are, so that a changed config can resume
};

/// Returns the name of a value to reach, such as "test.accuracy >= 0.95".
std::string describe(const ReachConfig& reach);

}  // namespace phalanx
