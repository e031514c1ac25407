// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/experiment_config.h"
#include "framework/base/config/locate.h"

namespace phalanx {

/// Loads and checks the config that --config and --set of a tool specify. Throws ConfigError with the place of each
/// problem.
void load_checked(ExperimentConfig& config, const config::Sources& sources);

}  // namespace phalanx
