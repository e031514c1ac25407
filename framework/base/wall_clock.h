// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace phalanx {

/// Returns the time of day, for people and for files. All code of a run reads it here. It may jump at any time, because
/// machines correct their clocks; durations and deadlines use std::chrono::steady_clock, which does not.
std::chrono::system_clock::time_point wall_time();

/// Returns the same in seconds since the epoch.
double wall_seconds();

/// Shifts the clock that this process reads, as if the machine's had jumped. For tests of such jumps. Thread-safe.
void shift_wall_clock(std::chrono::seconds shift);

}  // namespace phalanx
