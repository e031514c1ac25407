// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/meters/readings.h"
#include "framework/base/registry.h"

namespace phalanx {

/// How the learning rate changes over a run, as a factor of the optimizer's. Momentum stays as it is.
///
/// The factor is a pure function of the step and of what was observed until then: asking changes nothing, and a run
/// that goes on at step s needs no more than state(). All ranks observe the same and so have the same factor.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// For update `step` >= 0 of a run of `steps` >= 1. From `steps` on, the end holds.
  virtual double factor(std::int64_t step, std::int64_t steps) const = 0;

  /// The readings that observe() looks for; empty for schedules that depend on the step alone.
  virtual std::vector<std::string> watches() const { return {}; }

  /// What a test of the model after `step` updates has read.
  virtual void observe(std::int64_t /*step*/, const Readings&) {}

  /// What observing has left, for checkpoints: load() into a schedule of the same config and it goes on. As many
  /// numbers at any time. load() of another number of them throws DataError.
  virtual std::vector<double> state() const { return {}; }
  virtual void load(const std::vector<double>& state);
};

using Schedules = Registry<std::unique_ptr<Schedule>()>;

}  // namespace phalanx
