// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/simulate/step.h"

namespace phalanx::simulate {

/// Returns an SVG of samples per second over ranks, both logarithmic, with the ideal as a dashed line. Needs at least
/// two points.
std::string draw_scaling(const std::string& title, const std::vector<ScalingPoint>& points);

}  // namespace phalanx::simulate
