// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "framework/base/config/visitor.h"
#include "framework/base/metrics.h"

namespace phalanx {

/// Bounds of a metric, inclusive.
struct BoundsConfig {
  std::optional<double> min;
  std::optional<double> max;

  template <class V>
  void visit(V& v) {
    v("min", min, "least value of the metric");
    v("max", max, "greatest value of the metric");
  }
};

using ExpectedMetrics = std::map<std::string, BoundsConfig>;

/// Section `expect` of a config: {test: {accuracy: {min: 0.97}}}. A run fails if its result is out of bounds.
struct ExpectConfig {
  ExpectedMetrics train;
  ExpectedMetrics validation;
  ExpectedMetrics test;

  template <class V>
  void visit(V& v) {
    v.retired("test_accuracy", "expect: {test: {accuracy: {min: 0.97}}}");
    v("train", train, "bounds of the last training metrics, by name");
    v("validation", validation, "bounds of the final metrics on the validation split, by name");
    v("test", test, "bounds of the final metrics on the test split, by name");
  }
};

/// Throws ConfigError if `metrics`, which were measured on `split`, lack one of the expected metrics.
void check_measured(const ExpectedMetrics& expected, const Metrics& metrics, const std::string& split);

/// Throws Error for the first metric that is out of bounds. NaN is out of all bounds.
void check_expected(const ExpectedMetrics& expected, const Metrics& metrics, const std::string& split);

}  // namespace phalanx
