// SPDX-License-Identifier: Apache-2.0
#include "tools/config/load_checked.h"

#include "engine/config/check.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/kernels/kernels.h"

namespace phalanx {

void load_checked(ExperimentConfig& config, const config::Sources& sources) {
  config::load(config, sources.path, sources.overrides);
  try {
    check(config);
  } catch (const ConfigError& error) {
    throw config::located(error, sources);
  }
  kernels::use_kernels(config.kernels);
}

}  // namespace phalanx
