// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/observe/times/step_times.h"

namespace phalanx {

/// Returns the time of a step as a table for readers: phases with mean, share, and the ranks that took least and most,
/// followed by a sentence about the straggler. Lines end with '\n'. If they would be longer than `columns`, ranks are
/// abbreviated or dropped. With 0 columns there is no limit.
std::string to_time_table(const StepTimes& times, int columns = 0);

/// Returns a duration with three significant digits and a unit: "12.3 ms", "45.1 us".
std::string format_duration(double seconds);

}  // namespace phalanx
