// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Measured values by name, in the order in which they are shown.
using Metrics = std::vector<std::pair<std::string, double>>;

}  // namespace phalanx
