// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/early_stop_config.h"
#include "framework/base/metrics.h"

namespace phalanx {

/// Early stopping (Prechelt 1998, Early Stopping - But When?, criterion UP on the validation metric): training stops
/// after more than `patience` tests in a row without a new best result. NaN is never better. All ranks have the same
/// metrics, and so get the same answers.
class EarlyStop {
 public:
  explicit EarlyStop(EarlyStopConfig config) : config_(std::move(config)) {}

  bool enabled() const { return !config_.metric.empty(); }

  /// Throws ConfigError if `measured`, the metrics of a test, lacks the metric to watch.
  void check(const Metrics& measured) const;

  /// Receives the metrics of the test after `step` updates.
  void observe(std::int64_t step, const Metrics& metrics);

  /// Returns true if training must stop; never becomes false again.
  bool stopped() const { return stopped_; }

  /// Returns the reason for people: "accuracy was 0.971 at step 800, and no better in 4 tests since". Empty until
  /// stopped().
  std::string reason() const;

  /// Returns everything that the next answers depend on, for checkpoints.
  std::vector<double> state() const;
  void load(const std::vector<double>& state);

 private:
  bool better(double metric) const;

  EarlyStopConfig config_;
  bool seen_ = false;  // true after the first test with a number
  double best_ = 0;
  std::int64_t best_step_ = 0;
  std::int64_t bad_ = 0;  // consecutive tests that were not better
  bool stopped_ = false;
};

}  // namespace phalanx
