// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/experiment_config.h"
#include "engine/task/task.h"

namespace phalanx {

/// Returns the config with all defaults of the task filled in: the meters, the size of evaluation batches, the metric
/// by which the best checkpoints are chosen, and the direction of the task's own metric (highest or lowest is best). In
/// expect.reach, the lowest loss is best.
ExperimentConfig with_defaults_of(const Task& task, const ExperimentConfig& config);

/// Throws ConfigError if it is unknown, even after with_defaults_of(), which direction of a metric is best.
void check_directions(const ExperimentConfig& config);

}  // namespace phalanx
