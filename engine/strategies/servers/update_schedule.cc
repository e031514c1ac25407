// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/servers/update_schedule.h"

#include <string>

#include "framework/base/error.h"

namespace phalanx {

void check(const UpdateSchedule& schedule) {
  if (schedule.prefetch < schedule.every) return;
  throw ConfigError(
      "strategy.prefetch: " + std::to_string(schedule.prefetch) +
      " steps ahead is before the previous exchange; use less than strategy.every: " + std::to_string(schedule.every));
}

}  // namespace phalanx
