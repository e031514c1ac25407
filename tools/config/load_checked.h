// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/experiment_config.h"
#include "framework/base/config/locate.h"

namespace phalanx {

/// Loads and checks the config that --config and --set of a tool specify, and makes this process compute with the
/// kernels that it names (kernels::use_kernels()), as all ranks do that are threads or forks of this process. Every
/// program that computes as a config says calls this, once, while it has one thread. Throws ConfigError with the place
/// of each problem.
void load_checked(ExperimentConfig& config, const config::Sources& sources);

}  // namespace phalanx
