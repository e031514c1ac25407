// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/partition/pipeline/schedule.h"

// Makers that make_schedule() calls. The options have passed the checks that all schedules share.

namespace phalanx::pipeline {

Schedule make_gpipe(const ScheduleOptions& options);
Schedule make_1f1b(const ScheduleOptions& options);
Schedule make_interleaved(const ScheduleOptions& options);
Schedule make_zb_h1(const ScheduleOptions& options);
Schedule make_zero_bubble(const ScheduleOptions& options);
Schedule make_dualpipe(const ScheduleOptions& options);

/// Returns a schedule without actions.
inline Schedule empty_schedule(const char* name, const ScheduleOptions& options) {
  return {.name = name,
          .ranks = options.ranks,
          .stages = options.ranks * options.stages_per_rank,
          .micro_batches = options.micro_batches,
          .actions = std::vector<std::vector<Action>>(static_cast<std::size_t>(options.ranks))};
}

}  // namespace phalanx::pipeline
