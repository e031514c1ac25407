// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/parallel/pipeline/schedule.h"

// What make_schedule() calls; the options have been checked as far as they are alike for all.

namespace phalanx::pipeline {

Schedule make_gpipe(const ScheduleOptions& options);
Schedule make_1f1b(const ScheduleOptions& options);
Schedule make_interleaved(const ScheduleOptions& options);
Schedule make_zb_h1(const ScheduleOptions& options);
Schedule make_zero_bubble(const ScheduleOptions& options);
Schedule make_dualpipe(const ScheduleOptions& options);

/// One without actions.
inline Schedule empty_schedule(const char* name, const ScheduleOptions& options) {
  return {.name = name,
          .ranks = options.ranks,
          .stages = options.ranks * options.stages_per_rank,
          .micro_batches = options.micro_batches,
          .actions = std::vector<std::vector<Action>>(static_cast<std::size_t>(options.ranks))};
}

}  // namespace phalanx::pipeline
