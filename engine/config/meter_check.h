// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/experiment_config.h"
#include "engine/task/task.h"
#include "framework/base/sample_spec.h"

namespace phalanx {

/// Throws ConfigError if a meter of a complete config cannot measure the outputs that the task's models give for these
/// samples. Runs no model.
void check_meters(const Task& task, const SampleSpec& sample, const ExperimentConfig& config);

}  // namespace phalanx
