// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// Returns a workload "zoo_MODEL" for each registered model, but those that read programs from files: small (few
/// channels, blocks and tokens) and without dropout, fed with samples of the shapes that it takes.
std::vector<Workload> zoo_workloads();

}  // namespace phalanx::bench_train
