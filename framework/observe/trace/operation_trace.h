// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/observe/trace/chrome_trace.h"

namespace phalanx {

/// Returns the communicator operations that this rank has run since `begin_ns` (a time of monotonic_ns()), as recorded
/// by the flight recorder of `group`'s world: at most the last FlightRecorder::kEntries. An event lasts while its
/// operation runs; its details tell when it was launched. The lanes are kOperationsLane and, for simultaneous
/// operations, "communication 2" and so on.
///
/// Runs one operation on the group, to compare the recorder's clock with monotonic_ns(). Therefore all ranks must call
/// this function, in the same order with respect to their other operations.
std::vector<TraceEvent> trace_operations(Communicator& group, std::int64_t begin_ns);

inline constexpr const char* kOperationsLane = "communication";

/// Moves overlapping events to separate lanes: `lane`, "<lane> 2" and so on. An event that lies within another one
/// stays in its lane.
void spread_over_lanes(std::vector<TraceEvent>& events, const std::string& lane);

}  // namespace phalanx
