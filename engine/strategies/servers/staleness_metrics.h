// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/metrics.h"

namespace phalanx {

/// Returns the staleness of a client's reads, where `reads[b]` is the number of reads that were b clocks ahead of the
/// slowest client: "pulls", "staleness_mean", "staleness_max", and the nonzero entries of the histogram
/// "pulls_at_staleness_<clocks>", whose last entry counts all larger values. `prefix` comes before each name.
Metrics staleness_metrics(const std::string& prefix, const std::vector<std::int64_t>& reads);

}  // namespace phalanx
