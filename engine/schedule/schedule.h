#pragma once

#include <cstdint>
#include <memory>

#include "framework/base/registry.h"

namespace phalanx {

/// How the learning rate changes over a run, as a factor of the optimizer's. A pure function of the step.
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual double factor(std::int64_t step, std::int64_t steps) const = 0;  // step in [0, steps)
};

using Schedules = Registry<std::unique_ptr<Schedule>()>;

}  // namespace phalanx
