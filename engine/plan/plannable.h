// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/experiment_config.h"
#include "engine/strategies/strategies.h"

namespace phalanx {

/// Throws ConfigError if the steps of this config have operations that a plan cannot include, whatever its strategy
/// sends: those with parameter servers, skipped updates, or reductions of their own.
void check_plannable(const ExperimentConfig& config);

/// Throws ConfigError if the operations of a strategy, which must not be auto, follow neither from the buckets nor from
/// a step in a fake world (StepTraffic::kOther).
void check_plannable(const Strategies::Choice& strategy);

}  // namespace phalanx
