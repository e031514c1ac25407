// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/checkpoint/carried_state.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "framework/comm/communicator.h"
#include "launch/failure/record_exception.h"

// These functions tell the person the outcome of a recovery: training goes on, or too few ranks are left for it.
namespace phalanx {

/// Adds the hook that tells the person on rank 0, once training goes on, how long this has taken, and completes the
/// entries of Recovery::lost. `recovery` and `world` must outlive the engine's training.
void tell_when_it_goes_on(Recovery& recovery, const Communicator& world, Engine& engine);

/// Returns the error of a run that was saved after step `step` with `left` ranks.
TooFewRanks too_few_ranks(const Recovery& recovery, int left, const ExperimentConfig& config, std::int64_t step);

}  // namespace phalanx
