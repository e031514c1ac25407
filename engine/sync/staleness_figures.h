// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/sync/synchronizer.h"

namespace phalanx {

/// What a client's reads saw, of `reads[b]`, how many were b clocks ahead of the slowest client: "pulls",
/// "staleness_mean", "staleness_max", and the histogram "pulls_at_staleness_<clocks>" as far as it is not 0, whose last
/// place counts all beyond. `prefix` comes before each name.
Figures staleness_figures(const std::string& prefix, const std::vector<std::int64_t>& reads);

}  // namespace phalanx
