// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/watch/html/run_record.h"

namespace phalanx {

/// Runs side by side as a web page that needs nothing else: tables of what they reached and of their configs'
/// differences, and their curves, of the first kMostReadings readings, on top of each other. At most kMostSeries runs.
std::string to_comparison_page(const std::vector<RunRecord>& runs);

}  // namespace phalanx
