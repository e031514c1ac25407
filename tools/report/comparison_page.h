// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/watch/html/run_record.h"

namespace phalanx {

/// Returns a self-contained web page that compares runs: tables of their results and of the differences between their
/// configs, and charts of the first kMaxMetrics metrics with the curves of all runs. At most kMaxSeries runs.
std::string to_comparison_page(const std::vector<RunRecord>& runs);

}  // namespace phalanx
