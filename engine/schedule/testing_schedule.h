#pragma once

#include <memory>
#include <string>

#include "engine/schedule/schedule.h"
#include "framework/base/config/config.h"

namespace phalanx::testing {

struct ScheduleRoot {
  Schedules::Choice schedule{"constant"};

  template <class V>
  void visit(V& v) {
    v("schedule", schedule, "under test");
  }
};

/// The schedule that a config file would make of this YAML.
inline std::unique_ptr<Schedule> make_schedule(const std::string& yaml) {
  ScheduleRoot root;
  config::load_text(root, "schedule: " + yaml, "test.yaml");
  return root.schedule.make();
}

}  // namespace phalanx::testing
