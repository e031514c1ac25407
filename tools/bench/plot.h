// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/bench/measure.h"

namespace phalanx::bench {

/// An SVG file that stands by itself: for each operation that has sizes, median time over bytes and bus bandwidth over
/// bytes, both axes logarithmic, with a line for each backend, algorithm and memory. Operations without sizes are left
/// out; a launch has no bandwidth.
std::string to_svg(const Result& result);

}  // namespace phalanx::bench
