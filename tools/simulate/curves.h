// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/simulate/step.h"

namespace phalanx::simulate {

/// An SVG of samples per second against ranks, both logarithmic, with the ideal as a dashed line. At least two points.
std::string draw_scaling(const std::string& title, const std::vector<ScalingPoint>& points);

}  // namespace phalanx::simulate
