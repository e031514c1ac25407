// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

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

/// Bounds of some metrics of a split, by the metric's name.
using MetricBounds = std::map<std::string, BoundsConfig>;

/// Bounds of metrics by split.
struct SplitBounds {
  MetricBounds train;
  MetricBounds validation;
  MetricBounds test;

  template <class V>
  void visit(V& v) {
    v("train", train, "bounds of the last training metrics, by name");
    v("validation", validation, "bounds of the last metrics on the validation split, by name");
    v("test", test, "bounds of the last metrics on the test split, by name");
  }
};

/// A value that a metric must reach in time.
struct ReachConfig {
  std::string split = "test";
  std::string metric;
  std::optional<double> value;
  std::string best = "auto";
  std::optional<double> seconds;
  std::optional<double> epochs;

  template <class V>
  void visit(V& v) {
    v("split", split, "split whose metric this is", config::one_of({"train", "validation", "test"}));
    v("metric", metric, "name of the metric");
    v("value", value, "value to reach");
    v("best", best,
      "values that are better than it; auto: lowest for losses, and as the task defines it for its own metric",
      config::one_of({"auto", "highest", "lowest"}));
    v("seconds", seconds, "seconds from the start of training within which it is reached", config::above(0));
    v("epochs", epochs, "epochs within which it is reached", config::above(0));
  }
};

struct ExpectedThroughputConfig {
  std::optional<double> min;
  std::optional<double> of_median;
  std::int64_t nights = 7;

  template <class V>
  void visit(V& v) {
    v("min", min, "least number of samples per second", config::above(0));
    v("of_median", of_median,
      "least share of the median of earlier nights on the same hardware, such as 0.95; tools:regress checks it",
      config::above(0));
    v("nights", nights, "number of nights whose median of_median refers to", config::between(1, 1000));
  }
};

struct ExpectedMemoryConfig {
  std::string max;

  template <class V>
  void visit(V& v) {
    v("max", max, "most resident memory of any rank's process, such as 1GB; empty: no limit");
  }
};

struct ExpectedTrafficConfig {
  std::optional<double> tolerance;

  template <class V>
  void visit(V& v) {
    v("tolerance", tolerance,
      "share by which the bytes and the collectives of a step may differ from its plan (tools:plan); 0: not at all",
      config::between(0, 1));
  }
};

/// Another run whose training losses must be the same, step by step.
struct SameAsConfig {
  std::string config;
  double tolerance = 1e-5;
  std::int64_t steps = 0;
  std::int64_t ranks = 0;

  template <class V>
  void visit(V& v) {
    v("config", config,
      "config of a run with the same losses in each step, in the folder of this one; tools:regress "
      "checks it");
    v("tolerance", tolerance, "relative difference of losses that is allowed", config::at_least(0));
    v("steps", steps, "number of steps from the first one that are compared; 0: all", config::at_least(0));
    v("ranks", ranks, "number of ranks of that run; 0: as many as its config says", config::at_least(0));
  }
};

struct ExpectedScalingConfig {
  std::optional<double> min;

  template <class V>
  void visit(V& v) {
    v("min", min,
      "least scaling efficiency: throughput relative to the number of ranks times the throughput of one rank; "
      "tools:regress checks it",
      config::above(0));
  }
};

struct ExpectedFaultsConfig {
  std::int64_t injected = 0;
  std::int64_t survived = -1;

  /// Returns the least number of runs that must survive.
  std::int64_t least() const { return survived < 0 ? injected : survived; }

  template <class V>
  void visit(V& v) {
    v("injected", injected,
      "runs that tools:chaos disturbs with a fault each, which follows from the seed of the config; 0: none; "
      "tools:regress checks it",
      config::at_least(0));
    v("survived", survived, "least number of these runs that survive; -1: all of them", config::at_least(-1));
  }
};

/// Section `expect` of a config: {test: {accuracy: {min: 0.97}}}. A run checks everything that it can know by itself,
/// and fails if its results are not as expected. tools:regress checks what takes other runs.
struct ExpectConfig : SplitBounds {
  std::map<std::string, SplitBounds> epochs;
  std::vector<ReachConfig> reach;
  ExpectedThroughputConfig throughput;
  ExpectedMemoryConfig memory;
  ExpectedTrafficConfig traffic;
  SameAsConfig same_as;
  std::optional<double> resume_at;
  ExpectedScalingConfig scaling;
  ExpectedFaultsConfig faults;

  template <class V>
  void visit(V& v) {
    v.retired("test_accuracy", "expect: {test: {accuracy: {min: 0.97}}}");
    SplitBounds::visit(v);
    v("epochs", epochs, "bounds of the last metrics in an epoch, by its number, from 1");
    v("reach", reach, "values of metrics to reach within some time");
    v("throughput", throughput, "speed of training");
    v("memory", memory, "memory of the ranks");
    v("traffic", traffic, "communication of a step");
    v("same_as", same_as, "another run that trains the same way");
    v("resume_at", resume_at,
      "share of the steps after which the run is killed and resumed, with the same result as without that; "
      "tools:regress checks it",
      config::between(0, 1));
    v("scaling", scaling, "scaling efficiency");
    v("faults", faults, "faults that the run survives");
  }
};

/// Returns the keys of the expectations that take other runs, which a run leaves to tools:regress, such as
/// "expect.same_as".
std::vector<std::string> left_to_regress(const ExpectConfig& expect);

}  // namespace phalanx
