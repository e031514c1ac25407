// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/watch/step_times.h"

namespace phalanx {

/// Where the time of a step went, as a table for people: phases with mean, share, and the ranks that took least and
/// most; below it, who is the straggler. Lines end with '\n'. In `columns`, where that is not 0, ranks are named more
/// briefly if need be, or left out.
std::string to_time_table(const StepTimes& times, int columns = 0);

/// Milliseconds with three significant digits and a unit: "12.3 ms", "45.1 us".
std::string format_duration(double seconds);

}  // namespace phalanx
