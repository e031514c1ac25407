// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "engine/schedule/schedule.h"
#include "framework/base/config/config.h"

namespace phalanx::testing {

/// Returns the schedule that a config file with this YAML would create.
inline std::unique_ptr<Schedule> make_schedule(const std::string& yaml) {
  return config::load_as<Schedules::Choice>("schedule", yaml, "test.yaml").make();
}

}  // namespace phalanx::testing
