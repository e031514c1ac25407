// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/live/job_state.h"

namespace phalanx {

/// The size of a terminal, and whether it shows colors.
struct Screen {
  int columns = 100;
  int rows = 0;  // 0: no limit
  bool colors = false;
};

/// Returns the lines of a frame: name and progress of the job, its speed and metrics, notes about ranks that failed or
/// are waited for, the straggler, and the time of a step by rank. No line is wider than the screen, and there are no
/// more of them than it has rows: if not all ranks fit, those with the most work are shown. `now` is the time in
/// seconds since the epoch.
std::vector<std::string> draw_frame(const JobState& state, const Screen& screen, double now);

}  // namespace phalanx
