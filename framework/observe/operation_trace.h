// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/observe/chrome_trace.h"

namespace phalanx {

/// The operations of communicators that this rank has run since `begin_ns` (of monotonic_ns()), as the flight recorder
/// of `group`'s world remembers them: the last FlightRecorder::kEntries. They are as long as they ran; details say when
/// each was launched. Lanes are kOperationsLane and, for what ran at the same time, "communication 2", ...
///
/// Runs one operation on the group, to compare the recorder's clock with monotonic_ns(): all ranks call it, in the same
/// order with what else they launch.
std::vector<TraceEvent> trace_operations(Communicator& group, std::int64_t begin_ns);

inline constexpr const char* kOperationsLane = "communication";

/// Gives events that overlap lanes of their own: `lane`, "<lane> 2", ...; those that lie within another stay with it.
void spread_over_lanes(std::vector<TraceEvent>& events, const std::string& lane);

}  // namespace phalanx
