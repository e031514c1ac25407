// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "engine/engine.h"
#include "framework/collectives/tuning/tuner.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Returns a function for ExperimentContext::add_hooks by which a run chooses its algorithms: the tuner records the
/// operations of the first kStepsBeforeTuning steps of the run, which follow the table of the config, and tunes after
/// them. A run that resumes from a later step uses the table in its folder from the beginning; without one, it records
/// as many steps. `world`: the ranks that train.
std::function<void(Engine&)> tune_in_first_steps(std::shared_ptr<Tuner> tuner, CommunicatorPtr world);

inline constexpr int kStepsBeforeTuning = 2;

}  // namespace phalanx
