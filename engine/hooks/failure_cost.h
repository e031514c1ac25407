// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "engine/checkpoint/carried_state.h"
#include "framework/observe/metrics/metrics_record.h"

namespace phalanx {

/// Returns what failures have cost the job of this rank, which started at `started`: restarts (restarts_of_job()), and
/// the lost ranks without which it has gone on. `recovery` may be null: a lost rank ends the run.
FailureCost failure_cost(const Recovery* recovery, std::chrono::steady_clock::time_point started);

}  // namespace phalanx
