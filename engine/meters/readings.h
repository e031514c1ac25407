// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Measured values by name, as in metrics.jsonl, in the order in which they are shown. The same on all ranks.
using Readings = std::vector<std::pair<std::string, double>>;

}  // namespace phalanx
