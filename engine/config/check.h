// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/experiment_config.h"

namespace phalanx {

/// Throws ConfigError for values that are valid alone but not in combination.
void check(const ExperimentConfig& config);

}  // namespace phalanx
