// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/metrics.h"
#include "framework/base/registry.h"

namespace phalanx {

/// Defines how the learning rate changes over a run, as a factor of the optimizer's. Momentum does not change.
///
/// The factor is a pure function of the step and of the observations until then: computing it changes nothing, and a
/// run that resumes at step s needs only state(). All ranks observe the same metrics and so have the same factor.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// Returns the factor for update `step` >= 0 of a run of `steps` >= 1. From `steps` on, it keeps its final value.
  virtual double factor(std::int64_t step, std::int64_t steps) const = 0;

  /// Returns the names of the metrics that observe() requires; empty for schedules that depend on the step alone.
  virtual std::vector<std::string> monitored_metrics() const { return {}; }

  /// Receives the metrics of a test of the model after `step` updates.
  virtual void observe(std::int64_t /*step*/, const Metrics&) {}

  /// Returns the state that observations have left, for checkpoints. load() into a schedule with the same config
  /// restores it. The number of values never changes, and load() throws DataError for a different number.
  virtual std::vector<double> state() const { return {}; }
  virtual void load(const std::vector<double>& state);
};

using Schedules = Registry<std::unique_ptr<Schedule>()>;

}  // namespace phalanx
