// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/experiment/config.h"
#include "tools/bench_train/system.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// The config by which Phalanx trains the workload as the system says, on so many ranks, without end. Throws
/// ConfigError for options that do not fit.
ExperimentConfig make_config(const Workload& workload, const System& system, int ranks);

}  // namespace phalanx::bench_train
