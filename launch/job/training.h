// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "engine/experiment/experiment.h"

namespace phalanx {

/// Returns a function for ExperimentContext::add_hooks by which rank 0 writes the inputs of training to the run folder
/// when training starts: the config if the run is resumed, and the parameters that were fitted to the dataset. They
/// must not be written earlier, because the checkpoint may be refused. `config` and `context` must outlive the run.
std::function<void(Engine&)> write_inputs_at_start(const ExperimentConfig& config, const ExperimentContext& context);

/// Prints on rank 0 how training ended, how to resume it, and how large its recording is (framework.record). Returns
/// the exit status.
int report_end(const ExperimentConfig& config, const ExperimentResult& result, const ExperimentContext& context);

}  // namespace phalanx
