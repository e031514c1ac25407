// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/meters/readings.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// When a run ends because it no longer gets better.
struct EarlyStopConfig {
  std::string metric;
  std::string best = "auto";
  std::int64_t patience = 3;
  double min_delta = 0;

  template <class V>
  void visit(V& v) {
    v("metric", metric, "test metric to watch; empty: no early stopping");
    v("best", best, "which value of it is best; auto: what the task says of its own metric",
      config::one_of({"auto", "highest", "lowest"}));
    v("patience", patience, "consecutive tests without improvement to tolerate", config::at_least(0));
    v("min_delta", min_delta, "minimum change that counts as an improvement, in the metric's unit",
      config::at_least(0));
  }
};

/// Early stopping (Prechelt 1998, Early Stopping - But When?, criterion UP on the validation metric): after more than
/// `patience` tests in a row none of which was better than the best one before, training is to stop. A reading that is
/// not a number is never better. Readings are alike on all ranks, and so are the answers.
class EarlyStop {
 public:
  explicit EarlyStop(EarlyStopConfig config) : config_(std::move(config)) {}

  bool enabled() const { return !config_.metric.empty(); }

  /// Throws ConfigError where `measured`, the readings of a test, lack the metric.
  void check(const Readings& measured) const;

  /// After the test that was made after `step` updates.
  void observe(std::int64_t step, const Readings& readings);

  /// Whether to stop; for good.
  bool stopped() const { return stopped_; }

  /// Why, for people: "accuracy was 0.971 at step 800, and no better in 4 tests since"; empty until stopped().
  std::string reason() const;

  /// All that the next answers depend on, to be kept and given back.
  std::vector<double> state() const;
  void load(const std::vector<double>& state);

 private:
  bool better(double reading) const;

  EarlyStopConfig config_;
  bool seen_ = false;  // a test
  double best_ = 0;
  std::int64_t best_step_ = 0;
  std::int64_t bad_ = 0;  // tests in a row that were not better
  bool stopped_ = false;
};

}  // namespace phalanx
