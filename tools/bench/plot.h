// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/bench/measure.h"

namespace phalanx::bench {

/// Returns a self-contained SVG file. For each operation that has sizes it plots median time over bytes and bus
/// bandwidth over bytes, both on logarithmic axes, with a line for each backend, algorithm and memory. Operations
/// without sizes are omitted; a launch has no bandwidth.
std::string to_svg(const Result& result);

}  // namespace phalanx::bench
