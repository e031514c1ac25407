// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/experiment/config.h"
#include "framework/base/config/locate.h"

namespace phalanx {

/// The config that a tool's --config and --set name, checked. Throws ConfigError with the place of each problem.
void load_checked(ExperimentConfig& config, const config::Sources& sources);

}  // namespace phalanx
