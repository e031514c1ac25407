// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "framework/comm/store/store.h"

namespace phalanx::ps {

using Clock = std::chrono::steady_clock;

inline Clock::duration duration_of(Seconds seconds) { return std::chrono::duration_cast<Clock::duration>(seconds); }
inline Clock::time_point after(Seconds seconds) { return Clock::now() + duration_of(seconds); }
inline Seconds seconds_to(Clock::time_point due) { return std::max(Seconds(due - Clock::now()), Seconds(0)); }

}  // namespace phalanx::ps
