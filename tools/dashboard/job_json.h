// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/live/job_state.h"

namespace phalanx {

/// Returns the running jobs as the page of the dashboard reads them (tools/regress/site/app/live.js): one line of JSON.
/// `now` is the time in seconds since the epoch.
std::string to_json(const std::vector<JobState>& jobs, double now);

}  // namespace phalanx
