#pragma once

#include <string>

#include "engine/watch/step_times.h"

namespace phalanx {

/// Where the time of a step went, as a table for people: phases with mean, share, and the ranks that took least and
/// most; below it, who is the straggler. Lines end with '\n'.
std::string to_time_table(const StepTimes& times);

/// Milliseconds with three significant digits and a unit: "12.3 ms", "45.1 us".
std::string format_duration(double seconds);

}  // namespace phalanx
